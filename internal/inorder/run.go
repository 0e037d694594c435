package inorder

import (
	"errors"
	"runtime"
	"sync"
)

// ErrExited says that a function of the caller ended its goroutine, which was not the
// caller's own.
var ErrExited = errors.New("a function that was passed in called runtime.Goexit, as t.Fatal does; return from it, or panic")

// Work is divided into tasks, which have numbers.
type Work interface {
	// Take gives a worker its next task, with increasing numbers. ok is false when none is
	// left. One goroutine at a time calls it.
	Take(worker int) (task int, ok bool, err error)
	// Do makes the task that the worker has taken.
	Do(worker, task int) error
	// Stop releases goroutines that wait for a task, because another one has failed.
	Stop()
}

// Runner runs works, one after the other. The zero Runner is ready to use.
type Runner struct {
	work    Work
	mu      sync.Mutex
	ended   bool // hand out no more tasks
	failed  int  // the task to which err belongs
	err     error
	crashed any  // the value of a panic
	exited  bool // a goroutine was ended
}

// Run lets goroutines, numbered 0, 1, …, take tasks and do them until none is left. A single
// worker is the caller's goroutine.
//
// Of several errors it returns that of the first task, so that it does not depend on the
// number of workers. A panic reaches the caller, and runtime.Goexit gives [ErrExited].
func (r *Runner) Run(workers int, w Work) error {
	r.work, r.ended, r.err, r.crashed, r.exited = w, false, nil, nil, false
	if workers <= 1 {
		r.loop(0)
	} else {
		var group sync.WaitGroup
		for w := range workers {
			group.Go(func() { r.loop(w) })
		}
		group.Wait()
	}
	r.work = nil
	switch {
	case r.crashed != nil:
		panic(r.crashed)
	case r.exited:
		return ErrExited
	}
	return r.err
}

func (r *Runner) loop(worker int) {
	done := false
	defer func() {
		if done {
			return
		}
		value := recover() // nil after runtime.Goexit
		r.mu.Lock()
		defer r.mu.Unlock()
		if value == nil {
			r.exited = true
		} else {
			r.crashed = value
		}
		r.end()
	}()
	for {
		task, ok := r.next(worker)
		if !ok {
			break
		}
		if err := r.work.Do(worker, task); err != nil {
			r.mu.Lock()
			r.fail(task, err)
			r.mu.Unlock()
		}
	}
	done = true
}

func (r *Runner) next(worker int) (task int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return 0, false
	}
	task, ok, err := r.work.Take(worker)
	if err != nil {
		r.fail(task, err)
		return 0, false
	}
	r.ended = !ok
	return task, ok
}

// fail and end are called under the lock.
func (r *Runner) fail(task int, err error) {
	if r.err == nil || task < r.failed {
		r.err, r.failed = err, task
	}
	r.end()
}

func (r *Runner) end() {
	r.ended = true
	r.work.Stop()
}

// Blocks calls f for consecutive blocks of at most size of the numbers 0 … n−1, as a Runner
// does. 0 workers means one for each processor. The blocks do not depend on their number.
func Blocks(n, size, workers int, f func(i0, i1 int) error) error {
	if workers <= 0 {
		workers = runtime.GOMAXPROCS(0)
	}
	return new(Runner).Run(min(workers, (n+size-1)/size), &blocks{n: n, size: size, f: f})
}

type blocks struct {
	n, size, next int
	f             func(i0, i1 int) error
}

func (b *blocks) Take(int) (int, bool, error) {
	b.next++
	return b.next - 1, (b.next-1)*b.size < b.n, nil
}

func (b *blocks) Do(_, task int) error {
	return b.f(task*b.size, min((task+1)*b.size, b.n))
}

func (b *blocks) Stop() {}
