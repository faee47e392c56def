package cli_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTranscripts runs the commands of testdata/*.txt and compares what they print. A transcript has lines
//
//	# a comment
//	$ rea log order 10086 < FILE > FILE
//
// or "$ sql UPDATE rea_views_NAME ..." for a statement by hand, with the tables' names of SQLite,
// each with what follows: the standard output, lines of the standard error behind "! ", and "[exit N]" where N
// is not 0. "# sqlite only" on the first line keeps a transcript from other stores, "# no database" sets no
// REA_DATABASE_URL. -update writes what the commands print now.
func TestTranscripts(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, _, _ := strings.Cut(string(text), "\n")
			for i, s := range stores {
				if i > 0 && strings.Contains(head, "sqlite only") {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					sh := newShell(t, s)
					if err := os.CopyFS(sh.dir, os.DirFS("testdata/files")); err != nil && !os.IsNotExist(err) {
						t.Fatal(err)
					}
					if !strings.Contains(head, "no database") {
						sh.env["REA_DATABASE_URL"] = s.new(t)
					}
					got := sh.play(string(text))
					if got == string(text) {
						return
					}
					if *update && i == 0 {
						if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
							t.Fatal(err)
						}
						return
					}
					t.Errorf("%s\n%s", file, difference(string(text), got))
				})
			}
		})
	}
}

// play runs the commands of a transcript and gives the transcript that comes out.
func (sh *shell) play(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "$ rea"):
			out.WriteString(line + sh.line(strings.TrimSpace(strings.TrimPrefix(line, "$ rea"))))
		case strings.HasPrefix(line, "$ sql "):
			out.WriteString(line)
			sh.exec(strings.TrimPrefix(line, "$ sql "))
		case strings.HasPrefix(line, "#"):
			out.WriteString(line)
		case line == "\n" && !strings.HasSuffix(out.String(), "\n\n"):
			out.WriteString(line)
		}
	}
	return out.String()
}

// line runs one line, and gives what it prints.
func (sh *shell) line(text string) string {
	words := split(text)
	var args []string
	stdin, to := "", ""
	for i := 0; i < len(words); i++ {
		switch words[i] {
		case "<":
			i++
			stdin = sh.read(words[i])
		case ">":
			i++
			to = words[i]
		default:
			args = append(args, words[i])
		}
	}
	r := sh.pipe(stdin, args...)
	if to != "" {
		sh.write(to, r.stdout)
		r.stdout = ""
	}
	var b strings.Builder
	for line := range strings.Lines(sh.mask(r.stdout)) {
		if line != "\n" { // an empty line ends a paragraph of the transcript
			b.WriteString(line)
		}
	}
	for line := range strings.Lines(sh.mask(r.stderr)) {
		b.WriteString("! " + line)
	}
	if r.code != 0 {
		fmt.Fprintf(&b, "[exit %d]\n", r.code)
	}
	return b.String()
}

var (
	now     = regexp.MustCompile(`20(2[5-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z`)
	xid     = regexp.MustCompile(`"xid":"\d+"`)
	user    = regexp.MustCompile(`"db_user":(null|"[^"]*")`)
	pid     = regexp.MustCompile(`[^ "]+ pid \d+`)
	process = regexp.MustCompile(`cli\.test process \d+`)
	seen    = regexp.MustCompile(`(?m)^observed    login .*\n`)
	lags    = regexp.MustCompile(`"lag_seconds":[0-9.]+`)
)

// mask hides what differs between two runs, or between two stores.
func (sh *shell) mask(text string) string {
	if url := sh.env["REA_DATABASE_URL"]; url != "" {
		text = strings.ReplaceAll(text, url, "DATABASE")
	}
	text = strings.ReplaceAll(text, sh.dir, "DIR")
	text = now.ReplaceAllString(text, "NOW........................")
	text = xid.ReplaceAllString(text, `"xid":"N"`)
	text = pid.ReplaceAllString(text, "HOST pid N")
	text = process.ReplaceAllString(text, "cli.test process N")
	text = seen.ReplaceAllString(text, "")
	text = lags.ReplaceAllString(text, `"lag_seconds":N`)
	text = strings.ReplaceAll(text, "rea_views.", "rea_views_")
	return user.ReplaceAllString(text, `"db_user":USER`)
}

// split makes words of a line as a shell does, with '...' and "..." and nothing else.
func split(line string) (words []string) {
	var word strings.Builder
	quote, in := byte(0), false
	for i := range len(line) {
		switch c := line[i]; {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, in = c, true
		case quote == 0 && c == ' ':
			if in {
				words = append(words, word.String())
			}
			word.Reset()
			in = false
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words
}

// difference shows the first line that differs, with its neighbours.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		if i < len(w) && i < len(g) && w[i] == g[i] {
			continue
		}
		from := max(0, i-2)
		return fmt.Sprintf("from line %d\n--- want\n%s\n--- got\n%s", from+1,
			strings.Join(w[min(from, len(w)):min(i+4, len(w))], "\n"), strings.Join(g[min(from, len(g)):min(i+4, len(g))], "\n"))
	}
	return ""
}
