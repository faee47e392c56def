package transfer

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// importAndStop is the child of TestKilledImportGoesOn.
func importAndStop() {
	args := strings.Split(os.Getenv(killEnv), "\n") // store, url, file, rejects, batch
	transactions, err := strconv.Atoi(args[4])
	if err != nil {
		panic(err)
	}
	beforeCommit = func() {
		if transactions--; transactions == 0 {
			fmt.Println("stopped")
			select {}
		}
	}
	for _, s := range stores {
		if s.name != args[0] {
			continue
		}
		archive, err := s.open(context.Background(), args[1])
		if err != nil {
			panic(err)
		}
		_, err = importOf(context.Background(), archive, args[2], ImportOptions{BatchLines: 10, Rejects: args[3]})
		panic(fmt.Sprint("the import has ended: ", err))
	}
	panic("no such store")
}

func TestKilledImportGoesOn(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, s store) {
		dir, url := t.TempDir(), s.new(t)
		s.at(t, url)
		var text strings.Builder
		for i := range 100 {
			if i%10 == 3 {
				text.WriteString("nonsense\n")
				continue
			}
			text.WriteString(note(i))
		}
		path := write(t, filepath.Join(dir, "in.ndjson"), []byte(text.String()))
		rejects := filepath.Join(dir, "rejects")

		for _, transactions := range []string{"3", "4"} { // 2 batches are committed, then 3 more
			kill(t, strings.Join([]string{s.name, url, path, rejects, transactions}, "\n"))
		}
		archive := s.at(t, url)
		got := mustImport(t, archive, path, ImportOptions{BatchLines: 10, Rejects: rejects})
		if want := (ImportResult{Lines: 100, Stored: 90, Rejected: 10, New: 45, From: 50, Done: true, InRejects: 10, FirstReject: got.FirstReject}); got != want {
			t.Errorf("Import = %+v, want %+v", got, want)
		}
		if n := stored(t, archive); n != 90 {
			t.Errorf("the archive holds %d events, want 90", n)
		}
		var lines []int64
		for _, r := range readRejects(t, rejects) {
			lines = append(lines, r.Line)
		}
		if got, want := fmt.Sprint(lines), "[4 14 24 34 44 54 64 74 84 94]"; got != want {
			t.Errorf("rejects are of lines %s, want %s", got, want)
		}
	})
}

// kill runs a child until it stands right before a commit, and kills it there.
func kill(t *testing.T, args string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), killEnv+"="+args)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, _ := bufio.NewReader(out).ReadString('\n')
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if line != "stopped\n" {
		t.Fatalf("the child says %q, want stopped", line)
	}
}
