package transfer

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"unicode/utf8"

	"github.com/realtime-event-archive/rea"
)

// Reject is one line of a rejects file: a line of the import that was not stored, and why.
type Reject struct {
	Source  string  `json:"source"`  // hash of the content that was imported
	Line    int64   `json:"line"`    // number, from 1
	Code    string  `json:"code"`    // as in errors: "bad_payload", "limit", "conflict"...
	Message string  `json:"message"` // for people
	*Step           // of an illegal_step
	Text    *string `json:"text,omitempty"`   // the line as it was; neither text nor base64: too long to keep
	Base64  string  `json:"base64,omitempty"` // instead of text where the line is no UTF-8
}

// Step is what the state machine says of a line that it refuses.
type Step struct {
	Type   string   `json:"aggregate_type"`
	ID     string   `json:"aggregate_id"`
	Event  string   `json:"event_type"`
	Status *string  `json:"status"` // the present one; null: none
	Seq    int64    `json:"seq"`    // of the event before the line; 0: none
	Legal  []string `json:"legal"`  // the events that are legal in it, all of them
}

func newReject(number int64, code string, err error, text []byte) Reject {
	r := Reject{Line: number, Code: code, Message: err.Error()}
	if refused := new(rea.TransitionError); errors.As(err, &refused) {
		r.Step = &Step{refused.Aggregate.Type, refused.Aggregate.ID, refused.Event, &refused.Status, refused.Seq, slices.Concat([]string{}, refused.Legal)}
		if refused.Status == "" {
			r.Status = nil
		}
	}
	switch {
	case text == nil:
	case utf8.Valid(text):
		s := string(text)
		r.Text = &s
	default:
		r.Base64 = base64.StdEncoding.EncodeToString(text)
	}
	return r
}

// rejects is a file of Rejects. It is made with the first one, so that no file means no reject.
type rejects struct {
	path   string
	source string
	file   *os.File
	ours   bool  // close may remove it where nothing is left: this run made it, or it is of this source
	end    int64 // of what belongs to committed lines

	count   int64  // of rejects of committed lines
	first   Reject // of them, without its text
	pending []Reject
}

// openRejects goes on with the file at path, if there is one, after the entries for the first committed lines
// of the import of source. A file that holds anything else is not this import's to overwrite.
func openRejects(path, source string, committed int64) (*rejects, error) {
	r := &rejects{path: path, source: source}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // a device, a FIFO, a folder
		return nil, &NotRejectsError{Path: path}
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rea: import: rejects file: %w", err)
	}
	r.file = file
	if err := r.read(committed); err != nil {
		return nil, errors.Join(err, file.Close()) // it is not ours to remove
	}
	if info, err := file.Stat(); err == nil {
		r.ours = info.Size() > 0
	}
	if err := r.cut(); err != nil {
		return nil, errors.Join(err, r.close())
	}
	return r, nil
}

// read passes over the entries for committed lines.
func (r *rejects) read(committed int64) error {
	in := bufio.NewReader(r.file)
	for {
		entry, err := readEntry(in)
		if err == io.EOF { // also of an entry that a kill has cut, which begins as ours do
			if own := []byte(`{"source":"` + r.source); !bytes.HasPrefix(entry, own) && !bytes.HasPrefix(own, entry) {
				return &NotRejectsError{Path: r.path}
			}
			return nil
		}
		if err == errEntryTooLong {
			return &NotRejectsError{Path: r.path}
		}
		if err != nil {
			return fmt.Errorf("rea: import: rejects file %s: %w", r.path, err)
		}
		var reject Reject
		if json.Unmarshal(entry, &reject) != nil || reject.Line < 1 || reject.Code == "" {
			return &NotRejectsError{Path: r.path}
		}
		if reject.Source != r.source {
			return &NotRejectsError{Path: r.path, Other: true}
		}
		if reject.Line > committed {
			return nil
		}
		r.end += int64(len(entry))
		r.keep(reject)
	}
}

// maxEntryBytes: each byte of a line takes six at most, as in \u0001.
const maxEntryBytes = 6*MaxLineBytes + 1<<20

var errEntryTooLong = errors.New("no entry is so long")

func readEntry(in *bufio.Reader) (entry []byte, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if entry = append(entry, part...); err != bufio.ErrBufferFull {
			return entry, err
		}
		if len(entry) > maxEntryBytes {
			return nil, errEntryTooLong
		}
	}
}

// keep counts an entry, and remembers the first one.
func (r *rejects) keep(reject Reject) {
	if r.count++; r.count == 1 {
		reject.Source, reject.Step, reject.Text, reject.Base64 = "", nil, nil, ""
		r.first = reject
	}
}

// rejectsAt looks whether the file at path has the entries of an earlier import of source.
func rejectsAt(path, source string, rejected int64) (int64, Reject) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return 0, Reject{}
	}
	file, err := os.Open(path)
	if err != nil {
		return 0, Reject{}
	}
	defer file.Close()
	r := &rejects{path: path, source: source, file: file}
	if r.read(math.MaxInt64) != nil || r.count != rejected {
		return 0, Reject{}
	}
	return r.count, r.first
}

// NotRejectsError says that the rejects of an import would overwrite a file of another kind.
type NotRejectsError struct {
	Path  string
	Other bool // it holds the rejects of another import
}

func (e *NotRejectsError) Error() string {
	if e.Other {
		return fmt.Sprintf("rea: import: %s holds the rejects of another import: name another file for these, or move it away", e.Path)
	}
	return fmt.Sprintf("rea: import: %s exists and holds no rejects of an import: name another file for them", e.Path)
}

// cut drops what is after end: entries of a batch that was not committed.
func (r *rejects) cut() error {
	if r.file == nil {
		return nil
	}
	if err := r.file.Truncate(r.end); err != nil {
		return fmt.Errorf("rea: import: rejects file: %w", err)
	}
	_, err := r.file.Seek(r.end, io.SeekStart)
	return err
}

// write puts the entries of one batch on the disk, before the batch is committed: committed lines never lack
// their rejects. A batch that runs again writes over its first try.
func (r *rejects) write(list []Reject) error {
	if r.pending = list; len(list) == 0 || r.path == "" {
		return r.cut()
	}
	if r.file == nil {
		file, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return fmt.Errorf("rea: import: the rejects file cannot be made, name another one: %w", err)
		}
		r.file, r.ours = file, true
	}
	if err := r.cut(); err != nil {
		return err
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, reject := range list {
		reject.Source = r.source
		if err := enc.Encode(reject); err != nil {
			return err
		}
	}
	if _, err := r.file.Write(b.Bytes()); err != nil {
		return fmt.Errorf("rea: import: rejects file: %w", err)
	}
	return r.file.Sync()
}

// committed keeps what write has written.
func (r *rejects) committed() error {
	if r.file == nil {
		return nil
	}
	for _, reject := range r.pending {
		r.keep(reject)
	}
	r.pending = nil
	var err error
	r.end, err = r.file.Seek(0, io.SeekCurrent)
	return err
}

// close drops what was not committed, and the file if nothing is left of it.
func (r *rejects) close() error {
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	if info, statErr := os.Stat(r.path); r.ours && statErr == nil && info.Mode().IsRegular() && info.Size() == 0 {
		err = errors.Join(err, os.Remove(r.path))
	}
	return err
}
