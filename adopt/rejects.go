package adopt

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// Reject is a row that a baseline cannot take, and a line of its rejects file.
type Reject struct {
	Table   string    `json:"table"`
	Key     []*string `json:"key"`  // the values of the key's columns, as texts
	Code    string    `json:"code"` // "limit", "bad_payload", "projection"
	Message string    `json:"message"`
}

// rejects is a file of Rejects. It is made with the first one, so that no file means no reject.
type rejects struct {
	path string
	file *os.File
	end  int64 // of what belongs to committed chunks
}

// openRejects goes on with the file at path after its first entries, which are of committed chunks. A file that holds
// anything else is not a baseline's to overwrite.
func openRejects(path, table string, committed int64) (*rejects, error) {
	r := &rejects{path: path}
	if path == "" {
		return r, nil
	}
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, &NotRejectsError{path}
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, os.ErrNotExist) {
		return r, nil
	}
	if err != nil {
		return nil, fmt.Errorf("rea: baseline: rejects file: %w", err)
	}
	r.file = file
	if err := r.skip(table, committed); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return r, r.cut()
}

func (r *rejects) skip(table string, committed int64) error {
	in := bufio.NewReader(r.file)
	for n := int64(0); ; n++ {
		line, err := in.ReadBytes('\n')
		if own := []byte(`{"table":`); err == io.EOF { // also of an entry that a kill has cut, which begins as ours do
			if !bytes.HasPrefix(line, own) && !bytes.HasPrefix(own, line) {
				return &NotRejectsError{r.path}
			}
			return nil
		}
		if err != nil {
			return fmt.Errorf("rea: baseline: rejects file %s: %w", r.path, err)
		}
		var reject Reject
		if json.Unmarshal(line, &reject) != nil || reject.Table != table || reject.Code == "" {
			return &NotRejectsError{r.path}
		}
		if n < committed {
			r.end += int64(len(line))
		}
	}
}

// NotRejectsError says that the rejects of a baseline would overwrite a file of another kind.
type NotRejectsError struct{ Path string }

func (e *NotRejectsError) Error() string {
	return fmt.Sprintf("rea: baseline: %s exists and holds no rejects of this table's baseline: name another file for them, or move it away", e.Path)
}

// cut drops what is after end: entries of a chunk that was not committed.
func (r *rejects) cut() error {
	if r.file == nil {
		return nil
	}
	if err := r.file.Truncate(r.end); err != nil {
		return fmt.Errorf("rea: baseline: rejects file: %w", err)
	}
	_, err := r.file.Seek(r.end, io.SeekStart)
	return err
}

// write puts the entries of one chunk on the disk before it is committed: committed chunks never lack their rejects. A chunk
// that runs again writes over its first try.
func (r *rejects) write(list []Reject) error {
	if r.path == "" {
		return nil
	}
	if err := r.cut(); err != nil || len(list) == 0 {
		return err
	}
	if r.file == nil {
		file, err := os.OpenFile(r.path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return fmt.Errorf("rea: baseline: the rejects file cannot be made, name another one: %w", err)
		}
		r.file = file
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for _, reject := range list {
		if err := enc.Encode(reject); err != nil {
			return err
		}
	}
	if _, err := r.file.Write(b.Bytes()); err != nil {
		return fmt.Errorf("rea: baseline: rejects file: %w", err)
	}
	return r.file.Sync()
}

// committed keeps what write has written.
func (r *rejects) committed() (err error) {
	if r.file != nil {
		r.end, err = r.file.Seek(0, io.SeekCurrent)
	}
	return err
}

// close drops what was not committed, and the file if nothing is left of it.
func (r *rejects) close() error {
	if r.file == nil {
		return nil
	}
	err := errors.Join(r.cut(), r.file.Close())
	if r.end == 0 {
		err = errors.Join(err, os.Remove(r.path))
	}
	return err
}
