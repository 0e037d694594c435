package tuner

import (
	"context"
	"errors"
	"fmt"

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
	return &suggester{proposer, fallback, o, make(chan struct{}, 1)}, nil
}

// suggest proposes 1 to n configurations for the trials from v.Trials() on. The
// only errors are propose.ErrExhausted and that of ctx.
func (g *suggester) suggest(ctx context.Context, v *study.View, n int) (propose.Proposal, error) {
	p, err := g.ask(ctx, v, n)
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

// ask calls the proposer with a deadline that it need not heed.
func (g *suggester) ask(ctx context.Context, v *study.View, n int) (propose.Proposal, error) {
	type answer struct {
		p   propose.Proposal
		err error
	}
	select {
	case g.busy <- struct{}{}:
	default:
		return propose.Proposal{}, errors.New("it is still at work on an earlier ask")
	}
	ctx, cancel := context.WithTimeout(ctx, g.options.ProposeTimeout)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if r := recover(); r != nil {
				a.err = fmt.Errorf("it panicked: %v", r)
			}
			<-g.busy // before the answer, so that the next ask finds it free
			answers <- a
		}()
		a.p, a.err = g.proposer.Propose(ctx, v, n)
	}()
	select {
	case a := <-answers:
		return a.p, a.err
	case <-ctx.Done():
		return propose.Proposal{}, fmt.Errorf("it took longer than %s", g.options.ProposeTimeout)
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
// the number a suggestion was made for is still the next one when it is done.
func (d *desk) inTurn(ctx context.Context, f func()) error {
	done := make(chan struct{})
	job := func() {
		defer close(done)
		if ctx.Err() == nil {
			f()
		}
	}
	select {
	case d.asks <- job:
	default:
		return errBusy
	}
	select {
	case <-done:
		return ctx.Err()
	case <-ctx.Done(): // it may be its turn just now
		return fmt.Errorf("%w: %w", store.ErrUnknownOutcome, ctx.Err())
	case <-d.ctx.Done():
		return errRetired
	}
}

// errBusy refuses an ask because too many wait already.
var errBusy = errors.New("too many asks are waiting for this study; try again later")

// ask hands out trials; it runs on the proposer's goroutine.
func (d *desk) ask(ctx context.Context, c study.Ask) (trials []int, useful int, b *batch, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.settle()
	reply, err := d.decide(c)
	b = d.barrier()
	if err != nil {
		return nil, 0, b, err
	}
	trials = reply.Trials
	for missing := reply.Missing; missing > 0; {
		s, g := d.s, d.suggester
		view := s.Snapshot()
		d.mu.Unlock()
		p, err := g.suggest(ctx, view, missing)
		d.mu.Lock()
		if d.s != s {
			return nil, 0, nil, errDiscarded
		}
		if errors.Is(err, propose.ErrExhausted) {
			return d.exhausted(trials)
		} else if err != nil {
			return trials, 0, d.barrier(), err
		}
		useful = p.UsefulWorkers
		for _, s := range p.Suggestions {
			reply, err := d.decide(study.Start{Ask: c, Trial: d.s.Trials(), Suggestion: s})
			if err != nil {
				return trials, useful, d.barrier(), err
			}
			trials = append(trials, reply.Trials...)
		}
		missing -= len(p.Suggestions)
	}
	return trials, useful, d.barrier(), nil
}

// exhausted ends an ask for which there was nothing more to suggest, and the
// study too if no trial is left that could be handed out again; d.mu is held.
func (d *desk) exhausted(trials []int) ([]int, int, *batch, error) {
	if len(trials) > 0 {
		return trials, 0, d.barrier(), nil
	}
	if running := d.s.Count(study.Running) + d.s.Count(study.Queued); running > 0 {
		return nil, 0, d.barrier(), &study.BudgetError{MaxTrials: d.s.Trials(), Running: running, NextExpiry: d.s.NextExpiry()}
	}
	_, err := d.decide(study.Finish{Reason: study.FinishedExhausted})
	if err == nil {
		_, how := d.s.Status()
		err = &study.FinishedError{Reason: how.Reason}
	}
	return nil, 0, d.barrier(), err
}
