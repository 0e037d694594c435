package bo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"sync"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Done is the outcome of an execution.
type Done struct {
	Ran, Had, Of int      // runs done now, done before, and planned
	LeftOut      []string // runs that could not be done, and why, each reason once
	Failed       []error  // runs that failed and are tried again next time
}

// Execute does the runs that are missing. When ctx ends it returns its error, and finished
// runs stay. A run that fails does not stop the others. The errors are [*SelectionError],
// [*experiment.ValueError], [*FileError], that of ctx, and those of writing.
func (c *Comparison) Execute(ctx context.Context) (Done, error) {
	p, err := c.plan()
	if err != nil {
		return Done{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	e := &execution{c: c, p: p, cancel: cancel, problems: make(map[string]*opened), versions: make(map[string]*versioned), given: make(map[string]bool)}
	all := p.jobs()
	e.done.Of = len(all)
	next := make(chan job)
	var work sync.WaitGroup
	for range max(c.Jobs, 1) {
		work.Go(func() {
			for j := range next {
				e.one(ctx, j)
			}
		})
	}
	for _, j := range all {
		if ctx.Err() != nil {
			break
		}
		next <- j
	}
	close(next)
	work.Wait()
	if e.fatal == nil {
		e.fatal = ctx.Err()
	}
	return e.done, e.fatal
}

// execution is the common state of the runs of an Execute.
type execution struct {
	c      *Comparison
	p      *plan
	cancel context.CancelFunc

	mu       sync.Mutex
	done     Done
	passed   int // jobs that have ended in any way
	fatal    error
	problems map[string]*opened
	versions map[string]*versioned
	given    map[string]bool // reasons given in done.LeftOut
}

// versioned is the version of a contestant, determined once.
type versioned struct {
	once    sync.Once
	version string
	err     error
}

// version returns the version of a contestant, the same for all runs.
func (e *execution) version(ctx context.Context, k Contestant, s Setup) (string, error) {
	e.mu.Lock()
	v := e.versions[k.Name]
	if v == nil {
		v = &versioned{}
		e.versions[k.Name] = v
	}
	e.mu.Unlock()
	v.once.Do(func() { v.version, v.err = k.Version(ctx, s) })
	return v.version, v.err
}

// opened is a problem that is opened once.
type opened struct {
	once    sync.Once
	problem Problem
	err     error
}

// open returns the problem, the same for all runs.
func (e *execution) open(l Listed) (Problem, error) {
	e.mu.Lock()
	o := e.problems[l.Name]
	if o == nil {
		o = &opened{}
		e.problems[l.Name] = o
	}
	e.mu.Unlock()
	o.once.Do(func() { o.problem, o.err = l.Open(e.c.Data) })
	return o.problem, o.err
}

// one does a job and records its outcome.
func (e *execution) one(ctx context.Context, j job) {
	had, err := e.have(j)
	if err == nil && !had {
		e.report(j)
		err = e.run(ctx, j)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.passed++
	data, missing, unsupported := (*experiment.DataError)(nil), (*MissingError)(nil), (*UnsupportedError)(nil)
	file, write := (*FileError)(nil), (*writeError)(nil)
	switch {
	case had:
		e.done.Had++
	case err == nil:
		e.done.Ran++
	case ctx.Err() != nil:
	case errors.As(err, &data):
		e.leaveOut("%s: %v", j.listed.Name, data)
	case errors.As(err, &missing):
		e.leaveOut("%v", missing)
	case errors.As(err, &unsupported):
		e.leaveOut("%s: %v", j.listed.Name, unsupported)
	case errors.As(err, &file), errors.As(err, &write):
		e.fatal = err
		e.cancel()
	default:
		e.done.Failed = append(e.done.Failed, fmt.Errorf("%s on %s, seed %d: %w", j.contestant.Name, j.listed.Name, j.seed, err))
	}
}

// leaveOut records a reason once. The caller holds e.mu.
func (e *execution) leaveOut(form string, args ...any) {
	text := fmt.Sprintf(form, args...)
	if !e.given[text] {
		e.given[text] = true
		e.done.LeftOut = append(e.done.LeftOut, text)
	}
}

// have reports whether a job's run exists.
func (e *execution) have(j job) (bool, error) {
	r, err := readRun(e.c.Out, j.listed.Name, j.contestant.Name, j.seed)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil && (len(r.Trials) >= e.p.trials || r.Ended != ""), err
}

func (e *execution) report(j job) {
	if e.c.Progress == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.c.Progress(experiment.Progress{
		Done: e.passed, Of: e.done.Of, What: fmt.Sprintf("%s on %s, seed %d", j.contestant.Name, j.listed.Name, j.seed),
	})
}

// run does a job and writes its file.
func (e *execution) run(ctx context.Context, j job) error {
	problem, err := e.open(j.listed)
	if err != nil {
		return err
	}
	s := Setup{
		Space: problem.Space(), Seed: stream.Derive(j.seed, "bench bo "+j.listed.Name, 0),
		Trials: e.p.trials, Python: e.c.Python,
	}
	if l, ok := problem.(Limited); ok {
		s.Metrics = l.Metrics()
	}
	version, err := e.version(ctx, j.contestant, s)
	if err != nil {
		return err
	}
	o, err := j.contestant.New(ctx, s)
	if err != nil {
		return err
	}
	r := &runner{
		run: Run{
			Problem: j.listed.Name, Optimiser: j.contestant.Name, Version: version, Seed: j.seed,
			Best: problem.Best(), Median: problem.Median(),
		},
		problem: problem, optimiser: o, workers: j.contestant.Workers, cpu: e.c.Jobs <= 1,
	}
	_, timed := o.(Timed)
	if r.run.Clock = "wall"; timed || r.cpu {
		r.run.Clock = "cpu"
	}
	err = r.do(ctx, e.p.trials)
	if err := errors.Join(err, o.Close()); err != nil {
		return err
	}
	if err := r.run.write(e.c.Out); err != nil {
		return &writeError{err}
	}
	return nil
}

// writeError ends an execution, because the next run could not be written either.
type writeError struct{ error }

// Unwrap returns the cause.
func (e *writeError) Unwrap() error { return e.error }

// Forget deletes the files of the chosen runs, and returns how many there were.
func (c *Comparison) Forget() (int, error) {
	p, err := c.plan()
	if err != nil {
		return 0, err
	}
	n := 0
	for _, j := range p.jobs() {
		existed, err := forget(c.Out, j.listed.Name, j.contestant.Name, j.seed)
		if err != nil {
			return n, err
		}
		if existed {
			n++
		}
	}
	return n, nil
}
