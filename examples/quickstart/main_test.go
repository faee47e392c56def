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
	const want = `refused: rea: append to order/10086: PaymentReceived is illegal in status paid at seq 2: legal now: nothing
1 OrderPlaced      placed  {"cents": 9980}
2 PaymentReceived  paid    {}
at seq 1 the status was placed
`
	if out.String() != want {
		t.Errorf("output:\n%s\nwant:\n%s", out.String(), want)
	}
}
