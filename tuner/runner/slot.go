package runner

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/study"
)

// poll is how long a slot waits at most before it asks again.
const poll = 2 * time.Second

// errStop ends a slot because there is nothing more to ask for.
var errStop = errors.New("no more")

// slot asks and runs trials, one at a time, until there are no more. Its error
// ends the whole run.
func (r *run) slot(ctx context.Context) error {
	for ctx.Err() == nil {
		err := r.next(ctx)
		if errors.Is(err, errStop) || ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// next asks for a trial and runs it, or waits if there is none now.
func (r *run) next(ctx context.Context) error {
	name, wake, err := r.begin()
	if err != nil {
		return err
	}
	t, noise, err := r.ask(ctx, name)
	if err != nil {
		r.giveUp(name)
		return r.refused(ctx, err, wake)
	}
	r.mu.Lock()
	r.running[t.Number] = name
	r.mu.Unlock()
	kind := Started
	if t.Started.Before(r.began) {
		kind = Resumed
	}
	r.event(Event{Kind: kind, Trial: t, Noise: noise})
	told, err := r.trial(ctx, t)
	r.end(t.Number, name, told)
	if err != nil {
		return err
	}
	if told.State != 0 {
		r.announce(ctx, told, noise)
	}
	return nil
}

// begin takes a worker's name for a trial about to be asked for.
func (r *run) begin() (name string, wake <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped != nil || r.options.Limit > 0 && r.started >= r.options.Limit {
		return "", nil, errStop
	}
	r.started++
	name = r.names[0] // there are at least as many names as slots
	r.names = r.names[1:]
	return name, r.wake, nil
}

// giveUp returns the name of an ask without a trial.
func (r *run) giveUp(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.started--
	r.names = slices.Insert(r.names, 0, name)
}

// end returns the name of a trial that is over and wakes the slots that wait.
func (r *run) end(number int, name string, told study.Trial) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.running, number)
	r.names = append(r.names, name)
	close(r.wake)
	r.wake = make(chan struct{})
	switch {
	case told.State == 0:
		return
	case told.State == study.Failed && told.Outcome.Reason == study.FailedCrash:
		r.failures++
	default:
		r.failures = 0
	}
	r.counts[told.State]++
	if n := r.options.MaxFailures; n > 0 && r.failures >= n && r.stopped == nil {
		r.stopped = fmt.Errorf("%w: %d, the last one with: %s", ErrFailures, n, told.Outcome.Message)
	}
}

// announce says that a trial was told, with the study as it stands now.
func (r *run) announce(ctx context.Context, told study.Trial, noise []float64) {
	if r.options.OnEvent == nil {
		return
	}
	view, err := r.svc.Study(context.WithoutCancel(ctx), r.options.Study)
	if err != nil {
		r.event(Event{Kind: Remark, Trial: told, Err: err})
	}
	r.event(Event{Kind: Ended, Trial: told, Noise: noise, Study: view})
}

// ask asks for one trial as the named worker. It returns the noise of its prediction too.
func (r *run) ask(ctx context.Context, name string) (study.Trial, []float64, error) {
	c := study.Ask{RequestID: tuner.NewRequestID(), Count: 1, Worker: name, Lease: r.options.Lease}
	var asked tuner.Asked
	err := r.retry(ctx, func() (err error) {
		asked, err = r.svc.Ask(ctx, r.options.Study, c)
		return err
	})
	if err != nil {
		return study.Trial{}, nil, err
	}
	if len(asked.Trials) != 1 {
		return study.Trial{}, nil, fmt.Errorf("an ask for 1 trial returned %d", len(asked.Trials))
	}
	r.warn(asked.Warnings)
	return asked.Trials[0], asked.Noise, nil
}

var number = regexp.MustCompile(`\b\d+\b`) // top5 is a name

// warn passes on warnings, each once. Warnings that differ in numbers only are the same.
func (r *run) warn(warnings []string) {
	for _, text := range warnings {
		kind := number.ReplaceAllString(text, "")
		if _, again := r.warned.LoadOrStore(kind, true); !again {
			r.event(Event{Kind: Warning, Err: errors.New(text)})
		}
	}
}

// refused decides what follows from an ask without a trial.
func (r *run) refused(ctx context.Context, err error, wake <-chan struct{}) error {
	switch tuner.CodeOf(err) {
	case tuner.Finished:
		return errStop
	case tuner.NoneLeft, tuner.Paused:
		r.event(Event{Kind: Waiting, Err: err})
		if !sleep(ctx, poll, wake) {
			return errStop
		}
		return nil
	default:
		return err
	}
}

// retry calls f until it succeeds, finally fails, or Options.RetryFor is over. It tries
// again if the service cannot be reached or the outcome is unknown, so f must send the
// same request each time.
func (r *run) retry(ctx context.Context, f func() error) error {
	pause := 100 * time.Millisecond
	end := time.Now().Add(r.options.RetryFor)
	for {
		err := f()
		switch tuner.CodeOf(err) {
		case tuner.Unavailable, tuner.Unknown, tuner.Exhausted, tuner.Deadline:
		default:
			return err
		}
		if remote := (*tuner.RemoteError)(nil); errors.As(err, &remote) && remote.Final {
			return err
		}
		if time.Now().After(end) || !sleep(ctx, pause, nil) {
			return err
		}
		r.event(Event{Kind: Retrying, Err: err})
		pause = min(2*pause, 10*time.Second)
	}
}

// sleep waits. It returns early if wake is closed, and false if ctx ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	select {
	case <-time.After(d):
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}
