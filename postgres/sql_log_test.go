package postgres_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/realtime-event-archive/rea/internal/cli"
)

// importLine is what commands find on their standard input.
const importLine = `{"aggregate_type":"order","aggregate_id":"1","event_type":"Imported"}`

// command runs rea, which is the reader of the cases about the order of commits.
func command(t *testing.T, url string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	getenv := func(name string) string { return map[string]string{"REA_DATABASE_URL": url}[name] }
	code = cli.Run(t.Context(), args, cli.Env{Stdin: strings.NewReader(importLine), Stdout: &out, Stderr: &errs, Getenv: getenv, Dir: t.TempDir()})
	return code, out.String(), errs.String()
}

// logAfter tells what `rea log --after` shows, as "order/1#1 order/2#1", and the position of the last event.
func logAfter(t *testing.T, url string, after int64, more ...string) (told string, last int64) {
	t.Helper()
	code, out, errs := command(t, url, append([]string{"log", "-o", "jsonl", "--after", fmt.Sprint(after)}, more...)...)
	if code != 0 {
		t.Fatalf("rea log exits with %d: %s", code, errs)
	}
	var all []string
	last = after
	for line := range strings.Lines(out) {
		var named map[string]any
		if err := json.Unmarshal([]byte(line), &named); err != nil {
			t.Fatalf("line %q: %v", line, err)
		}
		position := int64(named["position"].(float64))
		if position != last+1 && len(more) == 0 {
			t.Errorf("Position = %d, want %d", position, last+1)
		}
		last = position
		all = append(all, fmt.Sprintf("%s/%s#%.0f", named["aggregate_type"], named["aggregate_id"], named["seq"]))
	}
	return strings.Join(all, " "), last
}

func TestLogAfterAPositionShowsWhatCommittedLateWithALowerID(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	other := connect(t, url)
	s.do(`BEGIN`)
	s.do(`SELECT rea.append('order', '1', 'OrderPlaced', '{"total": 10}')`)
	other.do(`BEGIN`)
	other.do(`SELECT rea.append('order', '2', 'OrderPlaced', '{"total": 20}')`)
	other.do(`COMMIT`)
	told, last := logAfter(t, url, 0)
	same(t, "log while the first is open", told, "order/2#1")
	s.do(`COMMIT`)
	told, last = logAfter(t, url, last)
	same(t, "log after that position", told, "order/1#1")
	told, _ = logAfter(t, url, last)
	same(t, "log after the last", told, "")
}

func TestLogPassesIDsThatAreNeverFilled(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	for n := range 10 {
		w := connect(t, url)
		w.do(`BEGIN; SAVEPOINT s`)
		w.do(`SELECT rea.append('order', $1, 'Lost')`, fmt.Sprint(n))
		switch n % 3 {
		case 0:
			w.do(`ROLLBACK`)
		case 1:
			w.do(`ROLLBACK TO SAVEPOINT s; COMMIT`)
		case 2:
			s.do(`SELECT pg_terminate_backend($1)`, int32(w.PgConn().PID()))
		}
	}
	s.do(`SELECT count(nextval('rea.events_id_seq')) FROM generate_series(1, 1000000)`)
	s.do(`SELECT rea.append('order', '99', 'OrderPlaced')`)
	told, _ := logAfter(t, url, 0)
	same(t, "log", told, "order/99#1")
	told, _ = logAfter(t, with(t, url, "statement_timeout", "2s"), 0, "--event", "OrderPlaced")
	same(t, "log of one type", told, "order/99#1")
}

func TestLogAfterEachPositionShowsEveryEventOnceWhileWritersWrite(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	const writers, appends = 8, 30
	var working sync.WaitGroup
	for i := range writers {
		w := connect(t, url)
		working.Go(func() {
			for n := range appends {
				end := `COMMIT`
				if n%20 == 7 {
					end = `ROLLBACK`
				}
				err := w.try(fmt.Sprintf(`BEGIN; SELECT rea.append('order', '%d', 'X'); SELECT pg_sleep(%f); %s`, (i+n)%5, float64((i*7+n*3)%20)/2000, end))
				if err != nil {
					t.Errorf("writer %d: %v", i, err)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { working.Wait(); close(done) }()
	seqs, last, ended := map[string]int64{}, int64(0), false
	for !ended {
		select {
		case <-done:
			ended = true // and once more
		default:
		}
		var told string
		told, last = logAfter(t, url, last)
		for _, event := range strings.Fields(told) {
			aggregate, number, _ := strings.Cut(event, "#")
			seqs[aggregate]++
			same(t, "seq of "+aggregate, number, fmt.Sprint(seqs[aggregate]))
		}
	}
	same(t, "last position", fmt.Sprint(last), s.text(`SELECT count(*) FROM rea.events`))
}

func TestCommandsOfAnOlderProgramRefuseToWriteAndStillRead(t *testing.T) {
	t.Parallel()
	_, s, url := archive(t)
	s.do(`SELECT rea.append('order', '1', 'A')`)
	s.do(`SELECT rea.feed_pass()`)
	s.do(`INSERT INTO rea.schema_migrations (version, name, checksum) SELECT max(version) + 1, 'later', 'sum' FROM rea.schema_migrations`)
	for _, args := range [][]string{{"append", "order", "1", "X"}, {"migrate", "up"}, {"import", "-"}} {
		code, _, errs := command(t, url, append(args, "--json")...)
		var answer struct {
			Error struct{ Code, Message string }
		}
		for line := range strings.Lines(errs) {
			_ = json.Unmarshal([]byte(line), &answer)
		}
		if code == 0 || answer.Error.Code != "newer_schema" || !strings.Contains(answer.Error.Message, "upgrade the program, or restore") {
			t.Errorf("rea %v exits with %d: %s, want newer_schema with the two ways out", args, code, errs)
		}
	}
	for _, args := range [][]string{{"log", "order", "1"}, {"show", "order", "1"}, {"log"}, {"export"}, {"migrate", "status"}} {
		if code, _, errs := command(t, url, args...); code != 0 {
			t.Errorf("rea %v exits with %d: %s, want 0", args, code, errs)
		}
	}
	s.want("1", `SELECT count(*) FROM rea.events`)
}
