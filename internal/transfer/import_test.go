package transfer

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/realtime-event-archive/rea"
)

func TestImportOfTheSameContentStoresNothingAgain(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, s store) {
		archive, dir := s.archive(t), t.TempDir()
		text := notes(250)
		plain := write(t, filepath.Join(dir, "plain.ndjson"), []byte(text))
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, _ = z.Write([]byte(text))
		_ = z.Close()
		packed := write(t, filepath.Join(dir, "packed"), zipped.Bytes())

		options := ImportOptions{BatchLines: 100}
		if got, want := mustImport(t, archive, plain, options), (ImportResult{Lines: 250, Stored: 250, New: 250, Done: true}); got != want {
			t.Errorf("the first import gives %+v, want %+v", got, want)
		}
		for _, path := range []string{plain, packed} {
			if got, want := mustImport(t, archive, path, options), (ImportResult{Lines: 250, Stored: 250, From: 250, Done: true}); got != want {
				t.Errorf("the import of %s again gives %+v, want %+v", filepath.Base(path), got, want)
			}
		}
		// From a pipe, too.
		if got, err := Import(t.Context(), archive, strings.NewReader(text), options); err != nil || got.New != 0 {
			t.Errorf("the import from a pipe gives %+v, %v, want 0 new", got, err)
		}
		if n := stored(t, archive); n != 250 {
			t.Errorf("the archive holds %d events, want 250", n)
		}
	})
}

func notes(n int) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(note(i))
	}
	return b.String()
}

func TestImportTakesTheFormsOfLineEnds(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, s store) {
		for name, text := range map[string]string{
			"windows":         strings.ReplaceAll(notes(3), "\n", "\r\n"),
			"no last newline": strings.TrimSuffix(notes(3), "\n"),
			"byte order mark": "\xef\xbb\xbf" + notes(3),
			"empty lines":     "\n" + strings.ReplaceAll(notes(3), "\n", "\n \n\n"),
		} {
			t.Run(name, func(t *testing.T) {
				archive := s.archive(t)
				got, err := Import(t.Context(), archive, strings.NewReader(text), ImportOptions{})
				if err != nil || got.New != 3 || got.Rejected != 0 {
					t.Errorf("Import = %+v, %v, want 3 new, 0 rejected", got, err)
				}
			})
		}
		got, err := Import(t.Context(), s.archive(t), strings.NewReader(""), ImportOptions{})
		if want := (ImportResult{Done: true}); err != nil || got != want {
			t.Errorf("Import of nothing = %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestImportPutsRejectsIntoAFile(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, s store) {
		archive, dir := s.archive(t), t.TempDir()
		at := func(seq int) string {
			return fmt.Sprintf(`{"aggregate_type":"order","aggregate_id":"1","event_type":"X","seq":%d}`, seq)
		}
		text := at(1) + "\n" + at(3) + "\n" + at(2) + "\nnonsense\n" + `{"aggregate_type":"` + "\xff" + `"}` + "\n" + at(2) + "\n" + `{"aggregate_type":"order","aggregate_id":"1","event_type":"Y","seq":2}`
		path := write(t, filepath.Join(dir, "in.ndjson"), []byte(text))
		options := ImportOptions{Rejects: path + ".rejects", BatchLines: 2}
		got := mustImport(t, archive, path, options)
		first := got.FirstReject
		if want := (ImportResult{Lines: 7, Stored: 2, New: 2, Duplicates: 1, Rejected: 4, Done: true, InRejects: 4, FirstReject: first}); got != want {
			t.Errorf("Import = %+v, want %+v", got, want)
		}
		if first.Line != 2 || first.Code != "hole" || first.Text != nil {
			t.Errorf("the first reject is %+v, want line 2, without its text", first)
		}
		rejects := readRejects(t, options.Rejects)
		var seen []string
		for _, r := range rejects {
			seen = append(seen, fmt.Sprint(r.Line, " ", r.Code))
		}
		if want := []string{"2 hole", "4 bad_payload", "5 bad_payload", "7 conflict"}; !reflect.DeepEqual(seen, want) {
			t.Fatalf("rejects are %v, want %v", seen, want)
		}
		if rejects[0].Text == nil || *rejects[0].Text != at(3) || rejects[2].Text != nil || rejects[2].Base64 == "" {
			t.Errorf("rejects do not hold the lines as they were: %+v", rejects)
		}
		// A finished import says again how many there were, and leaves the file alone.
		before, _ := os.ReadFile(options.Rejects)
		if got := mustImport(t, archive, path, options); got.Rejected != 4 || got.New != 0 || got.InRejects != 4 || got.FirstReject != first {
			t.Errorf("Import again = %+v, want 4 rejected, 0 new", got)
		}
		elsewhere := ImportOptions{Rejects: path + ".elsewhere"}
		if got := mustImport(t, archive, path, elsewhere); got.Rejected != 4 || got.InRejects != 0 || got.FirstReject.Line != 0 {
			t.Errorf("Import again with another file = %+v, want 4 rejected, none of them in the file", got)
		}
		// The rejects of one import are not another one's to overwrite.
		other := write(t, filepath.Join(dir, "other.ndjson"), []byte("nonsense\n"))
		if _, err := importOf(t.Context(), archive, other, options); !errors.As(err, new(*NotRejectsError)) {
			t.Errorf("Import of another file with the same rejects = %v, want a NotRejectsError", err)
		}
		if after, _ := os.ReadFile(options.Rejects); !bytes.Equal(before, after) {
			t.Errorf("the rejects file has changed to\n%s", after)
		}
	})
}

func readRejects(t *testing.T, path string) (list []Reject) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		var r Reject
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

func TestImportMakesNoRejectsFileWithoutRejects(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, s store) {
		dir := t.TempDir()
		path := filepath.Join(dir, "rejects")
		sum := func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) }
		archive := s.archive(t)
		own := write(t, filepath.Join(dir, "own"), []byte(`{"source":"`+sum(notes(4))+`","line":3,"code":"limit","message":"m"}`+"\n"+`{"source":"`+sum(notes(4))[:9]))
		for name, text := range map[string]string{path: notes(3), own: notes(4)} {
			if _, err := Import(t.Context(), archive, strings.NewReader(text), ImportOptions{Rejects: name}); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("there is a file %s (%v)", filepath.Base(name), err)
			}
		}
		for i, c := range []struct {
			text  string
			other bool
		}{
			{`{"source":"` + sum("x") + `","line":3,"code":"limit","message":"m"}` + "\n", true},
			{"a letter\n", false},
			{"a letter without an end", false},
			{`{"source":"` + sum("x"), false},
		} {
			file := write(t, filepath.Join(dir, "kept"), []byte(c.text))
			_, err := Import(t.Context(), archive, strings.NewReader(notes(5)), ImportOptions{Rejects: file})
			var not *NotRejectsError
			if !errors.As(err, &not) || not.Other != c.other {
				t.Errorf("Import %d = %v, want a NotRejectsError, Other %t", i, err, c.other)
			}
			if text, _ := os.ReadFile(file); string(text) != c.text {
				t.Errorf("the file %d holds %q now", i, text)
			}
		}
		if _, err := Import(t.Context(), archive, strings.NewReader(notes(5)), ImportOptions{Rejects: dir}); !errors.As(err, new(*NotRejectsError)) {
			t.Errorf("Import with a folder for the rejects = %v", err)
		}
		empty := write(t, filepath.Join(dir, "empty"), nil)
		if _, err := Import(t.Context(), archive, strings.NewReader(notes(6)), ImportOptions{Rejects: empty}); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(empty); err != nil {
			t.Errorf("an empty file of somebody's is gone: %v", err)
		}
	})
}

func TestImportOfAFileThatGrowsTakesWhatWasThere(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, s store) {
		path := write(t, filepath.Join(t.TempDir(), "in.ndjson"), []byte(notes(20)))
		grown := false
		got := mustImport(t, s.archive(t), path, ImportOptions{BatchLines: 5, Progress: func(Progress) {
			if !grown {
				grown = true
				write(t, path, []byte(notes(40)))
			}
		}})
		if got.New != 20 || !got.Done {
			t.Errorf("Import = %+v, want 20 new lines", got)
		}
	})
}

func TestImportRejectsALineThatIsTooLongAndGoesOn(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, s store) {
		rejects := filepath.Join(t.TempDir(), "rejects")
		text := note(1) + `{"aggregate_type":"` + strings.Repeat("x", MaxLineBytes) + "\"}\n" + note(2)
		got, err := Import(t.Context(), s.archive(t), strings.NewReader(text), ImportOptions{Rejects: rejects})
		if err != nil || got.New != 2 || got.Rejected != 1 {
			t.Fatalf("Import = %+v, %v, want 2 new, 1 rejected", got, err)
		}
		if r := readRejects(t, rejects)[0]; r.Line != 2 || r.Code != "limit" || r.Text != nil || r.Base64 != "" {
			t.Errorf("the reject is %+v", r)
		}
	})
}

func TestImportOfADamagedFileStoresNothing(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, s store) {
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		_, _ = z.Write([]byte(notes(1000)))
		_ = z.Close()
		archive := s.archive(t)
		for _, end := range []int{5, 30, zipped.Len() - 10, zipped.Len() - 1} {
			_, err := Import(t.Context(), archive, bytes.NewReader(zipped.Bytes()[:end]), ImportOptions{})
			if err == nil || !strings.Contains(err.Error(), "cut off") {
				t.Errorf("Import of %d bytes of a gzip file: %v, want that it is cut off", end, err)
			}
		}
		damaged := bytes.Clone(zipped.Bytes())
		damaged[zipped.Len()-6] ^= 1
		if _, err := Import(t.Context(), archive, bytes.NewReader(damaged), ImportOptions{}); err == nil || !strings.Contains(err.Error(), "damaged") {
			t.Errorf("Import of a damaged gzip file: %v", err)
		}
		if n := stored(t, archive); n != 0 {
			t.Errorf("the archive holds %d events, want 0", n)
		}
	})
}

func TestImportOfTheSameContentTwiceAtOnceStoresItOnce(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, s store) {
		archive := s.archive(t)
		text := notes(60)
		var inner error
		var once bool
		first, err := Import(t.Context(), archive, strings.NewReader(text), ImportOptions{BatchLines: 20, Progress: func(Progress) {
			if !once { // between two batches of the first one, the second one runs to its end
				once = true
				_, inner = Import(t.Context(), archive, strings.NewReader(text), ImportOptions{BatchLines: 20})
			}
		}})
		if inner != nil || !errors.Is(err, ErrBusy) || first.New != 20 {
			t.Errorf("the first import gives %+v, %v, the second one %v, want ErrBusy and nil", first, err, inner)
		}
		if n := stored(t, archive); n != 60 {
			t.Errorf("the archive holds %d events, want 60", n)
		}
	})
}

func TestImportThatIsInterruptedGoesOn(t *testing.T) {
	t.Parallel()
	forEachStore(t, func(t *testing.T, s store) {
		archive := s.archive(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		got, err := Import(ctx, archive, strings.NewReader(notes(60)), ImportOptions{BatchLines: 20, Progress: func(Progress) { cancel() }})
		if !errors.Is(err, context.Canceled) || got.Lines != 20 {
			t.Fatalf("Import = %+v, %v, want 20 lines and context.Canceled", got, err)
		}
		got, err = Import(t.Context(), archive, strings.NewReader(notes(60)), ImportOptions{BatchLines: 20})
		if want := (ImportResult{Lines: 60, Stored: 60, New: 40, From: 20, Done: true}); err != nil || got != want {
			t.Errorf("Import = %+v, %v, want %+v", got, err, want)
		}
	})
}

func TestExportImportExportGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, from := range stores {
		for _, to := range stores {
			t.Run(from.name+" to "+to.name, func(t *testing.T) {
				t.Parallel()
				ctx, a, b := t.Context(), from.archive(t), to.archive(t)
				tx := a.Autocommit().With(rea.By("用户 42"), rea.Because("<b>&\u2028\n"), rea.Correlate("c"), rea.Metadata([]byte(`{"ip":"::1"}`)))
				for i, payload := range []string{`{"b":1e2,"a":0.10,"n":12345678901234567890.123456789}`, `{"s":"\u00e9\ud83d\ude00\u2028<","t":"\\u0000"}`, `{}`} {
					ref := rea.Ref{Type: "order", ID: fmt.Sprint(i % 2)}
					if _, err := tx.With(rea.Once(fmt.Sprint(i))).Append(ctx, ref, rea.NewEvent{Type: "X", Version: i, Payload: []byte(payload)}, rea.NewEvent{Type: "Y"}); err != nil {
						t.Fatal(err)
					}
				}
				first := export(t, a, ExportOptions{})
				if got, err := Import(ctx, b, strings.NewReader(first), ImportOptions{}); err != nil || got.New != 6 {
					t.Fatalf("Import = %+v, %v, want 6 new", got, err)
				}
				if second := export(t, b, ExportOptions{}); second != first {
					t.Errorf("first export\n%ssecond export\n%s", first, second)
				}
				if got := export(t, b, ExportOptions{Filter: rea.Filter{Event: "Y", Limit: 2}}); strings.Count(got, "\n") != 2 || strings.Contains(got, `"X"`) {
					t.Errorf("export of two events Y gives\n%s", got)
				}
			})
		}
	}
}

func export(t *testing.T, archive *rea.Archive, o ExportOptions) string {
	t.Helper()
	var b strings.Builder
	if _, err := Export(t.Context(), archive, &b, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
