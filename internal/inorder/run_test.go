package inorder

import (
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
)

// Of several errors a Runner returns that of the first task, for any number of workers. A panic
// reaches the caller, and the Runner works again afterwards.
func TestRunner(t *testing.T) {
	var r Runner
	for _, workers := range []int{1, 2, 7} {
		var done atomic.Int64
		work := &blocks{n: 100, size: 3, f: func(i0, i1 int) error {
			done.Add(int64(i1 - i0))
			return nil
		}}
		if err := r.Run(workers, work); err != nil || done.Load() != 100 {
			t.Errorf("%d workers: %d of 100 done, %v", workers, done.Load(), err)
		}
		first := errors.New("first")
		err := r.Run(workers, &blocks{n: 40, size: 1, f: func(i, _ int) error {
			if i == 17 {
				return first
			}
			if i > 17 {
				return errors.New("later")
			}
			return nil
		}})
		if err != first {
			t.Errorf("%d workers: %v", workers, err)
		}
		for what, end := range map[string]func(){"panic": func() { panic("no") }, "exit": runtime.Goexit} {
			var value any
			var err error
			finished := make(chan bool)
			go func() {
				defer close(finished)
				defer func() { value = recover() }()
				err = r.Run(workers, &blocks{n: 9, size: 1, f: func(i, _ int) error {
					if i == 4 {
						end()
					}
					return nil
				}})
			}()
			<-finished
			switch {
			case what == "panic" && value != "no":
				t.Errorf("%d workers: the panic was %v", workers, value)
			case what == "exit" && workers > 1 && err != ErrExited:
				t.Errorf("%d workers: %v, want ErrExited", workers, err)
			}
		}
	}
	if err := Blocks(0, 5, 0, func(int, int) error { return errors.New("called") }); err != nil {
		t.Error(err)
	}
}
