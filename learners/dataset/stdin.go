package dataset

import (
	"context"
	"io"
)

// interruptible is a reader that ends with ctx, even while a terminal or a pipe blocks.
// A blocked Read then continues in its own goroutine, and its result is lost.
type interruptible struct {
	ctx    context.Context
	r      io.Reader
	buf    []byte // of the goroutine while it reads
	unread []byte // of buf
	err    error  // after them
	done   chan readResult
}

type readResult struct {
	n   int
	err error
}

func newInterruptible(ctx context.Context, r io.Reader) *interruptible {
	return &interruptible{ctx: ctx, r: r, buf: make([]byte, headBytes), done: make(chan readResult, 1)}
}

// Read returns ctx.Err() once ctx has ended.
func (i *interruptible) Read(p []byte) (int, error) {
	if len(i.unread) == 0 && i.err == nil {
		if err := i.ctx.Err(); err != nil {
			return 0, err
		}
		go func() {
			n, err := i.r.Read(i.buf)
			i.done <- readResult{n, err}
		}()
		select {
		case <-i.ctx.Done():
			return 0, i.ctx.Err()
		case got := <-i.done:
			i.unread, i.err = i.buf[:got.n], got.err
		}
	}
	n := copy(p, i.unread)
	if i.unread = i.unread[n:]; len(i.unread) > 0 {
		return n, nil
	}
	return n, i.err
}
