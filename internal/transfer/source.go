package transfer

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
)

// source is the content of an import, which is read twice: once to know it, once to store it.
type source struct {
	file  *os.File
	spool bool   // file is a copy of ours
	hash  string // of the decompressed content, hexadecimal sha256
	size  int64  // decompressed, in bytes
}

// open reads all of r once. What cannot be read twice (a pipe, standard input) is copied to a temporary file.
func open(ctx context.Context, r io.Reader) (*source, error) {
	s := &source{}
	if file, ok := r.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			s.file = file
		}
	}
	if s.file == nil {
		if err := s.copyFrom(ctx, r); err != nil {
			return nil, err
		}
	}
	content, err := s.reader(ctx)
	if err == nil {
		s.size, err = io.Copy(io.Discard, content)
		s.hash = content.sum()
	}
	if err != nil {
		s.close()
		return nil, fmt.Errorf("rea: import: %w", damage(err))
	}
	return s, nil
}

// damage says of a gzip what is wrong with it. Only a whole file is imported.
func damage(err error) error {
	var corrupt flate.CorruptInputError
	switch {
	case errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the gzip file is cut off, its end is missing: nothing of it is stored: copy it again (%w)", err)
	case errors.Is(err, gzip.ErrHeader), errors.Is(err, gzip.ErrChecksum), errors.As(err, &corrupt):
		return fmt.Errorf("the gzip file is damaged: nothing of it is stored: copy it again (%w)", err)
	}
	return fmt.Errorf("read: %w", err)
}

func (s *source) copyFrom(ctx context.Context, r io.Reader) error {
	file, err := os.CreateTemp("", "rea-import-*")
	if err != nil {
		return fmt.Errorf("rea: import: %w", err)
	}
	s.file, s.spool = file, true
	if _, err := io.Copy(file, &untilDone{ctx, r}); err != nil {
		s.close()
		return fmt.Errorf("rea: import: copy to a temporary file: %w", err)
	}
	return nil
}

// close removes what open made; the caller's own file stays open.
func (s *source) close() {
	if s.spool {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name())
	}
}

// content is the decompressed content, hashed as it is read.
type content struct {
	io.Reader
	hash hash.Hash
}

func (c *content) sum() string { return hex.EncodeToString(c.hash.Sum(nil)) }

func (s *source) reader(ctx context.Context) (*content, error) {
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(&untilDone{ctx, s.file}, 1<<16)
	var r io.Reader = buffered
	if magic, _ := buffered.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, err
		}
		r = unzipped
	}
	sum := sha256.New()
	if s.hash != "" { // what was added since the first reading is not of this content
		r = io.LimitReader(r, s.size)
	}
	return &content{Reader: io.TeeReader(r, sum), hash: sum}, nil
}

// untilDone stops reading when ctx ends.
type untilDone struct {
	ctx context.Context
	r   io.Reader
}

func (u *untilDone) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// lines cuts a content into lines.
type lines struct {
	r      *bufio.Reader
	number int64 // of the line that next gave last, from 1
	read   int64 // bytes
}

func newLines(r io.Reader) *lines { return &lines{r: bufio.NewReaderSize(r, 1<<16)} }

// next gives the next line in memory of its own, without its end and, on line 1, without a byte order mark.
// A line of more than MaxLineBytes is passed over: text is nil, size its length. io.EOF: no more lines.
func (l *lines) next() (text []byte, size int64, err error) {
	for {
		part, err := l.r.ReadSlice('\n')
		l.read += int64(len(part))
		size += int64(len(part))
		if size <= MaxLineBytes {
			text = append(text, part...)
		} else {
			text = nil
		}
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil && (err != io.EOF || size == 0) {
			return nil, 0, err
		}
		break
	}
	l.number++
	if size > MaxLineBytes {
		return nil, size, nil
	}
	text = bytes.TrimRight(text, "\r\n")
	if l.number == 1 {
		text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	}
	if text == nil {
		text = []byte{}
	}
	return text, size, nil
}
