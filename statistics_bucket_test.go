package rea

import (
	"testing"
	"time"
	_ "time/tzdata"
)

// Days begin with their first moment, whatever the clocks do at midnight.
func TestBucketsOfACalendar(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ zone, every, at, want string }{
		{"UTC", "24h", "2024-05-01T23:59:59Z", "2024-05-01T00:00:00Z"},
		{"America/Sao_Paulo", "24h", "2018-11-04T12:00:00Z", "2018-11-04T01:00:00-02:00"}, // no 00:00 on this day
		{"America/Sao_Paulo", "24h", "2018-11-04T02:59:59Z", "2018-11-03T00:00:00-03:00"},
		{"America/Sao_Paulo", "24h", "2018-11-04T03:00:00Z", "2018-11-04T01:00:00-02:00"},
		{"America/Sao_Paulo", "24h", "2018-02-18T02:30:00Z", "2018-02-17T00:00:00-02:00"}, // 23:30 for the second time
		{"America/Santiago", "24h", "2019-09-08T12:00:00Z", "2019-09-08T01:00:00-03:00"},
		{"America/Havana", "24h", "2023-03-12T12:00:00Z", "2023-03-12T01:00:00-04:00"},
		{"America/Havana", "24h", "2023-11-05T04:30:00Z", "2023-11-05T00:00:00-04:00"}, // 00:30 for the first time,
		{"America/Havana", "24h", "2023-11-05T05:30:00Z", "2023-11-05T00:00:00-04:00"}, // and for the second
		{"Africa/Cairo", "24h", "2023-04-28T12:00:00Z", "2023-04-28T01:00:00+03:00"},
		{"Asia/Beirut", "24h", "2022-03-27T12:00:00Z", "2022-03-27T01:00:00+03:00"},
		{"America/Los_Angeles", "24h", "2023-11-05T09:40:00Z", "2023-11-05T00:00:00-07:00"},
		{"America/Los_Angeles", "2h", "2024-03-10T10:30:00Z", "2024-03-10T03:00:00-07:00"}, // 02:00 is left out
		{"America/Los_Angeles", "2h", "2024-03-10T09:30:00Z", "2024-03-10T00:00:00-08:00"},
		{"America/Los_Angeles", "1h", "2023-11-05T08:40:00Z", "2023-11-05T01:00:00-07:00"},
		{"America/Los_Angeles", "1h", "2023-11-05T09:40:00Z", "2023-11-05T01:00:00-08:00"},
		{"Asia/Kolkata", "1h", "2023-11-05T08:40:00Z", "2023-11-05T14:00:00+05:30"},
		{"Asia/Kolkata", "24h", "1800-01-01T00:00:00Z", "1800-01-01T00:00:00+05:53"},
	} {
		zone, err := time.LoadLocation(test.zone)
		if err != nil {
			t.Fatal(err)
		}
		every, _ := time.ParseDuration(test.every)
		at, _ := time.Parse(time.RFC3339, test.at)
		if got := buckets(every, zone)(at); got.Format(time.RFC3339) != test.want {
			t.Errorf("%s of %s in %s = %s, want %s", test.every, test.at, test.zone, got.Format(time.RFC3339), test.want)
		}
	}
}
