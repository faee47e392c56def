package cli

import (
	"context"
	"io"
	"os"
)

// stdin is the standard input, which stops giving anything when ctx ends. A regular file does not block, and stays
// what it is: import need not copy it.
func (a *app) stdin(ctx context.Context) io.Reader {
	if file, ok := a.env.Stdin.(*os.File); ok {
		if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
			return file
		}
	}
	return &waitingReader{ctx: ctx, r: a.env.Stdin, got: make(chan int, 1)}
}

// waitingReader reads in a goroutine of its own, which nothing can wake where a terminal or a pipe gives nothing:
// after ctx has ended it is left behind, for the process to end with. Its buffer is read no more then.
type waitingReader struct {
	ctx context.Context
	r   io.Reader
	buf []byte
	got chan int
	err error // of the last read; the channel orders it
}

func (w *waitingReader) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	if len(w.buf) < len(p) {
		w.buf = make([]byte, len(p))
	}
	buf := w.buf[:len(p)]
	go func() {
		n, err := w.r.Read(buf)
		w.err = err
		w.got <- n
	}()
	select {
	case n := <-w.got:
		return copy(p, buf[:n]), w.err
	case <-w.ctx.Done():
		return 0, w.ctx.Err()
	}
}
