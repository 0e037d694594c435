package tuner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/bkbtuner/bkb/internal/planted"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// suggester makes suggestions for one study and always has an answer: if the
// proposer is late, fails, panics or talks nonsense, it falls back to a random
// configuration, marked as such.
type suggester struct {
	proposer propose.Proposer
	fallback propose.Proposer
	options  Options
	busy     chan struct{} // holds a token while the proposer is at work
	stuck    atomic.Bool   // it has been for so long that nobody prepares anything with it
	ready    atomic.Pointer[prepared]
}

// free takes the token back from who was at work.
func (g *suggester) free() {
	<-g.busy
	g.stuck.Store(false)
}

// phaseFallback marks suggestions that the study's proposer did not make.
const phaseFallback = "fallback"

func newSuggester(spec study.Spec, o Options) (*suggester, error) {
	proposer, err := propose.New(spec.Proposer, spec)
	if err != nil {
		return nil, err
	}
	fallback, err := propose.New(study.Component{Name: propose.Random}, spec)
	if err != nil {
		return nil, err
	}
	return &suggester{proposer: proposer, fallback: fallback, options: o, busy: make(chan struct{}, 1)}, nil
}

// anchor returns the model event that is due, if one is.
func (g *suggester) anchor(ctx context.Context, v *study.View) (a study.Anchor, due bool, err error) {
	anchorer, ok := g.proposer.(propose.Anchorer)
	if !ok {
		return a, false, nil
	}
	type event struct {
		a   study.Anchor
		due bool
	}
	e, err := work(ctx, g, func(ctx context.Context) (event, error) {
		a, due, err := anchorer.Anchor(ctx, v)
		return event{a, due}, err
	})
	return e.a, e.due, err
}

// suggest proposes 1 to n configurations for the trials from v.Trials() on. The
// only errors are propose.ErrExhausted and that of ctx. Without a model, which
// is how modelErr came about, it falls back at once.
func (g *suggester) suggest(ctx context.Context, v *study.View, n int, modelErr error) (propose.Proposal, error) {
	var p propose.Proposal
	err := modelErr
	if err == nil {
		p, err = work(ctx, g, func(ctx context.Context) (propose.Proposal, error) {
			if p, ok := g.takePrepared(v, n); ok {
				return p, nil
			}
			return g.proposer.Propose(ctx, v, n)
		})
	}
	if err == nil {
		err = check(p, v, n)
	}
	if err == nil || errors.Is(err, propose.ErrExhausted) {
		return p, err
	}
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	g.options.Logger.Warn("the proposer gave no suggestion; falling back to a random one", "trial", v.Trials(), "error", err)
	p, err = g.fallback.Propose(ctx, v, n)
	if err != nil {
		return p, err
	}
	for i := range p.Suggestions {
		p.Suggestions[i].Phase = phaseFallback
	}
	return p, check(p, v, n)
}

// work has the proposer do something, with a deadline that it need not heed.
func work[T any](ctx context.Context, g *suggester, f func(context.Context) (T, error)) (result T, err error) {
	type answer struct {
		result T
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, g.options.ProposeTimeout)
	defer cancel()
	select {
	case g.busy <- struct{}{}:
	case <-ctx.Done():
		return result, fmt.Errorf("it was still at work on something earlier after %s", g.options.ProposeTimeout)
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if r := recover(); r != nil {
				a.err = fmt.Errorf("it panicked: %v", r)
			}
			g.free() // before the answer, so that the next one finds it free
			answers <- a
		}()
		a.result, a.err = f(ctx)
	}()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
		return result, fmt.Errorf("it took longer than %s", g.options.ProposeTimeout)
	}
}

// check holds a proposal against what the study would refuse.
func check(p propose.Proposal, v *study.View, n int) error {
	if len(p.Suggestions) < 1 || len(p.Suggestions) > n {
		return fmt.Errorf("it made %d suggestions, 1 to %d were wanted", len(p.Suggestions), n)
	}
	for _, s := range p.Suggestions {
		if err := v.Spec().Space.Validate(s.Config); err != nil {
			return err
		}
	}
	return nil
}

// suggest works through the asks, one at a time, until the desk retires.
func (d *desk) suggest() {
	for {
		select {
		case ask := <-d.asks:
			ask()
		case <-d.ctx.Done():
			return
		}
	}
}

// inTurn runs f on the proposer's goroutine: whatever makes trials does, so that
// the number a suggestion was made for is still the next one when it is done. An
// error means that f has not run and will not, or, if it is an unknown outcome,
// that f is at work and must not share memory with the caller.
func (d *desk) inTurn(ctx context.Context, f func()) error {
	defer d.t.turns.asking(d.stuck())()
	var taken atomic.Bool // by the goroutine, or by who withdraws it
	done := make(chan struct{})
	job := func() {
		if taken.CompareAndSwap(false, true) {
			f()
		}
		close(done)
	}
	select {
	case d.asks <- job:
	default:
		return errBusy
	}
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		if taken.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, ctx.Err())
	case <-d.ctx.Done():
		if taken.CompareAndSwap(false, true) {
			return errRetired
		}
		<-done // it is at work, and ends soon
		return nil
	}
}

// stuck tells whether the study's proposer is.
func (d *desk) stuck() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.suggester.stuck.Load()
}

// errBusy refuses an ask because too many wait already.
var errBusy = errors.New("too many asks are waiting for this study; try again later")

// ask hands out trials; it runs on the proposer's goroutine. The batch is to be
// waited for, whatever the error.
func (d *desk) ask(ctx context.Context, c study.Ask) (a answer, b *batch, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	defer func() { a.trials = d.handedOut(a.reply, c.Worker) }()
	d.settle()
	before := d.s.Position()
	reply, err := d.decide(c)
	if err != nil {
		return a, d.barrier(), err
	}
	a.reply = reply
	if d.s.Position() > before {
		a.first = d.last()
	}
	for missing := reply.Missing; missing > 0; {
		p, err := d.propose(ctx, missing)
		if errors.Is(err, errDiscarded) {
			if c.RequestID == "" && a.first.stored() { // to ask again would hand out others
				return answer{}, nil, fmt.Errorf("%w: %w", store.ErrUnknownOutcome, errPart)
			}
			return answer{}, nil, err
		}
		if err == nil && p.Converged && len(a.reply.Trials) == 0 {
			return a, d.barrier(), d.converged(p.Gap)
		}
		if errors.Is(err, propose.ErrExhausted) {
			err = d.exhausted(a.reply)
			return a, d.barrier(), err
		} else if err != nil {
			return a, d.barrier(), err
		}
		a.usefulWorkers, a.warnings = p.UsefulWorkers, p.Warnings
		if p.Capped > 0 {
			a.warnings = append(slices.Clip(a.warnings), fmt.Sprintf("the model rests on %d inducing points, the most that the proposer's option cap allows", p.Capped))
		}
		if len(p.Suggestions) < missing {
			missing = len(p.Suggestions) // there are no more
		}
		whole := len(a.reply.Trials) + missing
		for _, s := range p.Suggestions {
			reply, err := d.decide(study.Start{Ask: c, Trial: d.s.Trials(), Answer: whole, Suggestion: s})
			if err != nil {
				return a, d.barrier(), err
			}
			if a.first == nil {
				a.first = d.last()
			}
			a.reply.Trials = append(a.reply.Trials, reply.Trials...)
			a.reply.Epochs = append(a.reply.Epochs, reply.Epochs...)
		}
		missing -= len(p.Suggestions)
	}
	return a, d.barrier(), nil
}

// propose has n suggestions made, after the model event that is due, if one is.
// d.mu is held, but not meanwhile; errDiscarded says that the study is another.
func (d *desk) propose(ctx context.Context, n int) (propose.Proposal, error) {
	s, g := d.s, d.suggester
	defer d.t.turns.asking(g.stuck.Load())() // whoever asked may have given up
	view := s.Snapshot()
	d.mu.Unlock()
	anchor, due, modelErr := g.anchor(ctx, view)
	d.mu.Lock()
	if d.s != s {
		return propose.Proposal{}, errDiscarded
	}
	if modelErr == nil && due {
		anchor.Effective = s.Position() + 1
		if _, err := d.decide(anchor); err != nil {
			return propose.Proposal{}, err
		}
		view = s.Snapshot()
	}
	d.mu.Unlock()
	p, err := g.suggest(ctx, view, n, modelErr)
	d.mu.Lock()
	if d.s != s {
		return propose.Proposal{}, errDiscarded
	}
	if due { // not at every ask
		for _, text := range p.Warnings {
			d.t.options.Logger.Warn(text, "study", d.name)
		}
	}
	return p, err
}

// converged ends the study because nothing can be better by more than what it
// was told to stop at; d.mu is held.
func (d *desk) converged(gap float64) error {
	detail := fmt.Sprintf("no configuration is expected to be better by more than %.3g", gap)
	if _, err := d.decide(study.Finish{Reason: study.FinishedGap, Detail: detail}); err != nil {
		return err
	}
	_, how := d.s.Status()
	return &study.FinishedError{Reason: how.Reason, Detail: how.Detail}
}

// maxAuto is the most trials that an ask gets which leaves the number to the
// proposer.
const maxAuto = 64

// autoCount is how many more trials are useful now, at least one; of a request
// that was answered before, how many it was answered with.
func (d *desk) autoCount(ctx context.Context, c study.Ask) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n, ok := d.s.Answered(c.RequestID); ok {
		return n, nil
	}
	if d.broken != nil {
		return 0, d.broken
	}
	if status, _ := d.s.Status(); status != study.StatusActive {
		return 1, nil // the ask will say why not
	}
	n, err := d.useful(ctx, 1)
	if err != nil || n == 1 {
		return n, err
	}
	// One suggestion tells how many of its like are useful; those that the ask will get
	// may be of another.
	m, err := d.useful(ctx, n)
	return min(n, m), err
}

// useful is how many more trials are useful now by what n suggestions tell, at least
// one; d.mu is held.
func (d *desk) useful(ctx context.Context, n int) (int, error) {
	p, err := d.propose(ctx, n)
	if errors.Is(err, propose.ErrExhausted) || errors.Is(err, errDiscarded) {
		return 1, nil
	}
	return min(max(p.UsefulWorkers-d.s.Count(study.Running), 1), maxAuto), err
}

// answer is what an ask is given.
type answer struct {
	reply         study.Reply
	trials        []study.Trial
	usefulWorkers int
	warnings      []string
	first         *batch // has the first event that the ask made, nil if it made none
}

// errPart is why an ask that was refused is not one without effect: the lock is
// given up while the proposer is at work, and what was handed out before may be
// stored by then.
var errPart = errors.New("a part of what was asked for has been handed out")

// handedOut returns the trials of an answer as they stand, but under the epochs
// of the answer: whoever is late to repeat an ask must not speak for the next
// holder. d.mu is held.
func (d *desk) handedOut(r study.Reply, worker string) []study.Trial {
	var trials []study.Trial
	for i, n := range r.Trials {
		t, ok := d.s.Trial(n)
		if !ok {
			continue
		}
		if t.Epoch != r.Epochs[i] && !planted.Is(planted.EpochOfNext) {
			t.Epoch, t.Worker = r.Epochs[i], worker
		}
		trials = append(trials, t)
	}
	return trials
}

// exhausted ends an ask for which there was nothing more to suggest, and the
// study too if no trial is left that could be handed out again; d.mu is held.
func (d *desk) exhausted(reply study.Reply) error {
	if len(reply.Trials) > 0 {
		return nil
	}
	if running, queued := d.s.Count(study.Running), d.s.Count(study.Queued); running+queued > 0 {
		return &study.NoneLeftError{Trials: d.s.Trials(), Running: running, NextExpiry: d.s.NextExpiry()}
	}
	if _, err := d.decide(study.Finish{Reason: study.FinishedExhausted}); err != nil {
		return err
	}
	_, how := d.s.Status()
	return &study.FinishedError{Reason: how.Reason}
}
