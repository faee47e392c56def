package main

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTheStoryIsToldInOrder(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	if err := run(t.Context(), filepath.Join(t.TempDir(), "shop.db"), &out); err != nil {
		t.Fatal(err)
	}
	const want = `refused: rea: append to order/10086: expected seq 1, the last one is 2: load it again and retry
1 OrderPlaced      {"status": "placed", "total_amount": 99.80}
2 PaymentReceived  {"amount": 99.80, "status": "paid"}
at seq 1 the status was "placed"
`
	if out.String() != want {
		t.Errorf("output:\n%s\nwant:\n%s", out.String(), want)
	}
}
