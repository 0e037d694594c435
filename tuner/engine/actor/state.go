package actor

import (
	"context"
	"fmt"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
	"github.com/bkbtuner/bkb/tuner/memlimit"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/study"
)

// state is a study in memory with the state that follows from its events. A refused
// commit makes the log read the study again, into a new state that replaces the old one.
// If the pointer has changed, decisions made in between were not stored.
type state struct {
	study     *study.Study
	held      amount       // size of the study
	digest    view.Digest  // what lists show of the study
	touched   view.Touched // trials of the last events
	leases    leases       // of the running trials, by the monotonic clock
	pruner    prune.Pruner // nil for none
	suggester *suggester
}

// Fold returns the study of a log in a store. It calls each with the study after every
// event and stops at its first error.
func Fold(ctx context.Context, st store.Store, id store.StudyID, each func(*study.Study, study.Event) error) (*study.Study, error) {
	s := new(study.Study)
	for r, err := range st.Read(ctx, id, 0) {
		if err != nil {
			return nil, err
		}
		if err := s.Apply(r.Event); err != nil {
			return nil, &store.CorruptError{Study: id, Position: r.Position, Reason: err.Error()}
		}
		if err := each(s, r.Event); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// readState reads a study from a store. The leases begin when all events are read.
func readState(ctx context.Context, env *Environment, id store.StudyID, name string) (*state, error) {
	v, now := &state{leases: make(leases)}, time.Now()
	var err error
	fits := Reading(env.Memory, true)
	if v.study, err = Fold(ctx, env.Store, id, func(s *study.Study, e study.Event) error {
		v.leases.observe(e, now)
		v.held.add(e)
		v.digest.Observe(e)
		v.touched.Observe(e)
		return fits(e)
	}); err != nil {
		return nil, err
	}
	spec := v.study.Spec()
	if v.suggester, err = newSuggester(spec, env); err != nil {
		return nil, fmt.Errorf("study %s: %w", name, err)
	}
	if v.pruner, err = prune.New(spec.Pruner, spec); err != nil {
		return nil, fmt.Errorf("study %s: %w", name, err)
	}
	if v.pruner != nil {
		for t := range v.study.All(0) {
			v.pruner.Update(t)
		}
	}
	v.leases.grace(time.Now())
	return v, nil
}

// apply applies an event that happened now.
func (v *state) apply(e study.Event, now time.Time) error {
	if err := v.study.Apply(e); err != nil {
		return err
	}
	v.leases.observe(e, now)
	v.held.add(e)
	v.digest.Observe(e)
	v.touched.Observe(e)
	if n, ok := e.Trial(); ok && v.pruner != nil {
		t, _ := v.study.Trial(n)
		v.pruner.Update(t)
	}
	return nil
}

// waits reports whether the clock has a lease or a timeout to end later.
func (v *state) waits() bool {
	status, _ := v.study.Status()
	return len(v.leases) > 0 || status != study.StatusFinished && v.study.Spec().Timeout > 0
}

// verdict returns whether a trial should stop.
func (v *state) verdict(n int) tuner.Verdict {
	t, _ := v.study.Trial(n)
	out := tuner.Verdict{Deadline: t.Deadline}
	if v.pruner != nil {
		d := v.pruner.Decide(n)
		out.Stop, out.Reason = d.Stop, d.Reason
	}
	if status, how := v.study.Status(); status == study.StatusFinished && how.Reason == study.FinishedUser && !out.Stop {
		out.Stop, out.Reason = true, "the study was finished by hand"
	}
	if reason := t.Attributes[study.StopAttribute]; reason != "" && !out.Stop {
		out.Stop, out.Reason = true, reason
	}
	return out
}

// handedOut returns the trials of an answer as they stand, but under the answer's
// epochs. A worker that repeats an ask late must not act as the next holder.
func (v *state) handedOut(r study.Reply, worker string) []study.Trial {
	var trials []study.Trial
	for i, n := range r.Trials {
		t, ok := v.study.Trial(n)
		if !ok {
			continue
		}
		if t.Epoch != r.Epochs[i] {
			t.Epoch, t.Worker = r.Epochs[i], worker
		}
		trials = append(trials, t.WithoutReports())
	}
	return trials
}

// exhausted returns the error of an ask when no trial is left but some may be handed
// out again. It returns nil if none may.
func (v *state) exhausted() error {
	running, queued := v.study.Count(study.Running), v.study.Count(study.Queued)
	if running+queued == 0 {
		return nil
	}
	return &study.NoneLeftError{Trials: v.study.Trials(), Running: running, NextExpiry: v.study.NextExpiry()}
}

// Reading returns a function to call with every event of a study being read. It returns
// a [tuner.MemoryError] if there is no room for more. Of a study that is not kept, the first
// bytes are always read.
func Reading(m *memlimit.Limit, kept bool) func(study.Event) error {
	const step = 1 << 20 // bytes between two checks
	unseen := 0
	if kept {
		unseen = step
	}
	return func(e study.Event) error {
		if unseen += view.Size(e); m == nil || unseen < step {
			return nil
		}
		unseen = 0
		leave, ok := m.Enter(step, memlimit.ShareLoad)
		if !ok {
			return &tuner.MemoryError{Limit: m.Bytes()}
		}
		leave()
		return nil
	}
}

// summary returns the data of the summary of a study at its present position. The log's
// lock is held.
func (v *state) summary() []byte { return view.Summarize(v.study, &v.digest) }

// ObserveCommit reports stored events.
func ObserveCommit(o *tuner.Observer, events []study.Event, took time.Duration) {
	if o.Committed != nil {
		o.Committed(took, len(events))
	}
	if o.Stored == nil {
		return
	}
	for _, e := range events {
		phase := ""
		if b, ok := e.Body.(study.Started); ok && b.Suggestion != nil {
			phase = b.Suggestion.Phase
		}
		o.Stored(view.Kind(e.Body), phase)
	}
}
