package cli_test

import (
	"os"
	"strings"
	"testing"
)

func TestTheCatalogIsFoundInTheOrderThatIsDocumented(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	sh.must("init")
	sh.must("append", "order", "1", "X", "--data", `{"a": 1}`)
	says := func(value string) string {
		return "rea: 1\naggregates: {order: {events: {X: {set: {said: " + value + "}}}}}\n"
	}
	seen := func(args ...string) string {
		return sh.must(append([]string{"show", "order", "1", "--json"}, args...)...)
	}
	if got := seen(); !strings.Contains(got, `"state":{"a":1}`) {
		t.Errorf("without a catalog, state = %s, want the payload", got)
	}
	sh.write("rea.yaml", says("here"))
	sh.write("other.yaml", says("environment"))
	sh.write("flag.yaml", says("flag"))
	for _, c := range []struct {
		env, want string
		args      []string
	}{
		{"", `{"said":"here"}`, nil}, {"other.yaml", `{"said":"environment"}`, nil}, {"other.yaml", `{"said":"flag"}`, []string{"--catalog", "flag.yaml"}},
		{"none", `{"a":1}`, nil}, {"other.yaml", `{"a":1}`, []string{"--catalog", "none"}},
	} {
		sh.env["REA_CATALOG"] = c.env
		if got := seen(c.args...); !strings.Contains(got, `"state":`+c.want) {
			t.Errorf("REA_CATALOG=%s %v gives %s, want %s", c.env, c.args, got, c.want)
		}
	}
	sh.env["REA_CATALOG"] = "."
	if r := sh.rea("show", "order", "1"); r.code != 1 || !strings.Contains(r.stderr, "the catalog .") {
		t.Errorf("a folder as the catalog ends with %d, %s, want 1", r.code, r.stderr)
	}
	sh.write("broken.yaml", "rea: 1\n\tx")
	sh.env["REA_CATALOG"] = "broken.yaml"
	for _, args := range [][]string{{"log"}, {"export"}, {"append", "order", "1", "Y"}} { // what shows or stores events as they are
		sh.must(args...)
	}
	for _, args := range [][]string{{"show", "order", "1"}, {"log", "order", "1"}, {"log", "--event", "X"}, {"catalog", "show"}} {
		if r := sh.rea(args...); r.code != 1 || !strings.Contains(r.stderr, "broken.yaml:2:") {
			t.Errorf("rea %v ends with %d, %s, want 1 and the place", args, r.code, r.stderr)
		}
	}
}

func TestACatalogCannotActOnATerminal(t *testing.T) {
	t.Parallel()
	sh := newShell(t, stores[0])
	text, err := os.ReadFile("testdata/files/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	hostile := "\u202eX" // turns the direction of writing
	sh.write("rea.yaml", strings.ReplaceAll(string(text), "OrderShipped", hostile))
	sh.write("wrong.yaml", "rea: 1\naggregates:\n  \""+hostile+"\": {"+hostile+": 1}\n")
	for _, args := range [][]string{
		{"catalog", "show"}, {"catalog", "show", "--json"}, {"catalog", "check"}, {"catalog", "diagram", "order"},
		{"catalog", "check", "--catalog", "wrong.yaml"}, {"catalog", "check", "--catalog", "wrong.yaml", "--json"}, {"catalog", "show", "--catalog", "wrong.yaml"},
	} {
		if r := sh.rea(args...); strings.Contains(r.stdout+r.stderr, "\u202e") || r.code == 2 {
			t.Errorf("rea %v ends with %d and prints %q", args, r.code, r.stdout+r.stderr)
		}
	}
}
