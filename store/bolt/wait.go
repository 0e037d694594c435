package bolt

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// OpenWhenFree is [Open], whose wait for another process ends with ctx. waiting, if not
// nil, is called after a second of waiting.
func OpenWhenFree(ctx context.Context, path string, o Options, waiting func(*FileError)) (st *Store, err error) {
	err = WhenFree(ctx, o.LockTimeout, waiting, func(turn time.Duration) error {
		o.LockTimeout = turn
		st, err = Open(path, o)
		return err
	})
	return st, err
}

// WhenFree calls open until the file is not in use, for at most a time. open waits for
// turn, which is short, so that the end of ctx has an effect in between.
func WhenFree(ctx context.Context, atMost time.Duration, waiting func(*FileError), open func(turn time.Duration) error) error {
	const quiet = time.Second
	start := time.Now()
	for {
		turn := min(atMost-time.Since(start), 250*time.Millisecond)
		if turn <= 0 {
			turn = -1
		}
		err := open(turn)
		used := (*FileError)(nil)
		switch {
		case !errors.Is(err, ErrInUse):
			return err
		case turn < 0 && atMost > 0:
			return fmt.Errorf("%w; waited %v", err, atMost)
		case turn < 0:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case waiting != nil && errors.As(err, &used) && time.Since(start) >= quiet:
			waiting(used)
			waiting = nil
		}
	}
}

// Process names the process that has the file open, for [ErrInUse].
func (e *FileError) Process() string {
	if e.PID == 0 {
		return "another process"
	}
	return fmt.Sprintf("process %d (%s)", e.PID, e.Name)
}
