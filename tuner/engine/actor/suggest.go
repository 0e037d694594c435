package actor

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// suggester makes suggestions for one study and always has an answer. If the study's
// proposer is late, fails, panics or makes an invalid suggestion, the suggester falls
// back to a random configuration, marked as a fallback.
//
// The token of busy guards the proposer, which sees one history at a time. A suggester
// belongs to one [state] study and is dropped with it, so that the proposer keeps
// nothing it learned from discarded events.
type suggester struct {
	proposer propose.Proposer
	fallback propose.Proposer
	env      *Environment
	busy     chan struct{} // holds a token while the proposer works
	stuck    atomic.Bool   // the proposer works for too long, and nothing is prepared with it
	ready    atomic.Pointer[prepared]
}

// free takes the token back.
func (g *suggester) free() {
	<-g.busy
	g.stuck.Store(false)
}

func newSuggester(spec study.Spec, env *Environment) (*suggester, error) {
	proposer, err := env.Propose(spec.Proposer, spec)
	if err != nil {
		return nil, err
	}
	fallback, err := propose.New(study.Component{Name: propose.Random}, spec)
	if err != nil {
		return nil, err
	}
	return &suggester{proposer: proposer, fallback: fallback, env: env, busy: make(chan struct{}, 1)}, nil
}

// models tells whether the proposer has a model.
func (g *suggester) models() bool {
	_, models := g.proposer.(propose.Modeler)
	return models
}

// anchor returns the model event that is due, or nil.
func (g *suggester) anchor(ctx context.Context, v *study.View) (*study.Anchor, error) {
	model, ok := g.proposer.(propose.Modeler)
	if !ok {
		return nil, nil
	}
	return work(ctx, g, func(ctx context.Context) (*study.Anchor, error) {
		begun := time.Now()
		a, due, err := model.Anchor(ctx, v)
		if !due || err != nil {
			return nil, err
		}
		if refitted := g.env.Observer.Refitted; refitted != nil {
			refitted(time.Since(begun), propose.InducingPointsOf(a))
		}
		return &a, nil
	})
}

// suggest proposes 1 to n configurations for the trials from v.Trials() on. It returns
// no error except propose.ErrExhausted and that of ctx. If modelErr says that the model
// could not be made, it falls back at once.
func (g *suggester) suggest(ctx context.Context, v *study.View, n int, modelErr error) (propose.Proposal, error) {
	var p propose.Proposal
	err := modelErr
	begun, prepared := time.Now(), false
	defer func() {
		if g.env.Observer.Proposed != nil && ctx.Err() == nil {
			g.env.Observer.Proposed(time.Since(begun), prepared)
		}
	}()
	if err == nil {
		p, err = work(ctx, g, func(ctx context.Context) (propose.Proposal, error) {
			if p, ok := g.takePrepared(v, n); ok {
				prepared = true
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
	why := fmt.Sprintf("no suggestion from the proposer for trial %d, which gets a random configuration (%v); if it was late, set a longer --propose-timeout", v.Trials(), err)
	g.env.Logger.Info(why)
	p, err = g.fallback.Propose(ctx, v, n)
	if err != nil {
		return p, err
	}
	p.Warnings = append(p.Warnings, why)
	for i := range p.Suggestions {
		p.Suggestions[i].Phase = study.PhaseFallback
	}
	return p, check(p, v, n)
}

// work calls f, which uses the proposer. It returns at the deadline even if f does not.
func work[T any](ctx context.Context, g *suggester, f func(context.Context) (T, error)) (result T, err error) {
	type answer struct {
		result T
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, g.env.ProposeTimeout)
	defer cancel()
	select {
	case g.busy <- struct{}{}:
	case <-ctx.Done():
		return result, fmt.Errorf("the proposer was still busy with earlier work after %s", g.env.ProposeTimeout)
	}
	answers := make(chan answer, 1)
	go func() {
		var a answer
		defer func() {
			if r := recover(); r != nil {
				a.err = fmt.Errorf("the proposer panicked: %v", r)
			}
			g.free() // before the answer, so that the next caller finds it free
			answers <- a
		}()
		a.result, a.err = f(ctx)
	}()
	select {
	case a := <-answers:
		return a.result, a.err
	case <-ctx.Done():
		return result, fmt.Errorf("the proposer took longer than %s", g.env.ProposeTimeout)
	}
}

// check returns an error if the study would refuse a proposal.
func check(p propose.Proposal, v *study.View, n int) error {
	if len(p.Suggestions) < 1 || len(p.Suggestions) > n {
		return fmt.Errorf("the proposer made %d suggestions and must make 1 to %d", len(p.Suggestions), n)
	}
	for _, s := range p.Suggestions {
		if err := v.Spec().Space.Validate(s.Config); err != nil {
			return err
		}
	}
	return nil
}

// prepared is a suggestion made before an ask.
type prepared struct {
	position study.Position // of the view it was made for
	trial    int
	proposal propose.Proposal
}

// prepare makes the next suggestion in the background, with the model that is due
// before it. It is called at each tell, and when a worker first calls after the study
// was loaded. Reads prepare nothing. The tell need not be stored yet. If the store
// refuses it, the suggestion goes with the [suggester]. An ask that sees exactly the
// same study gets the suggestion. Otherwise the suggestion is dropped, so preparation
// decides nothing. The log's lock is held.
func (q *queue) prepare() {
	if !q.env.LongLived || !q.log.state.suggester.models() || !q.preparing.CompareAndSwap(false, true) {
		return
	}
	q.env.Work.Go(func() {
		defer q.preparing.Store(false)
		if q.log.suggester().stuck.Load() {
			return
		}
		done, ok := q.env.Processors.Prepare(q.log.ctx)
		if !ok {
			return
		}
		defer done()
		g, view := q.toPrepare()
		if view == nil {
			return
		}
		if err := g.prepare(q.log.ctx, view, q.wanted); err != nil && q.log.ctx.Err() == nil {
			q.env.Logger.Debug("no suggestion was prepared", "study", q.log.name, "error", err)
		}
		g.rest(q.log.ctx)
	})
}

// toPrepare returns the study to prepare a suggestion for. The view is nil if there is
// nothing to prepare.
func (q *queue) toPrepare() (*suggester, *study.View) {
	q.log.mu.Lock()
	defer q.log.mu.Unlock()
	v, err := q.log.current()
	status, _ := v.study.Status()
	if !v.suggester.models() || err != nil || status != study.StatusActive {
		return v.suggester, nil
	}
	return v.suggester, v.study.Snapshot()
}

// wanted reports whether preparation should stop early. It should if any study has an
// ask, or if a call waits to consult this study's proposer.
func (q *queue) wanted() bool {
	return q.consulting.Load() > 0 || q.env.Processors.disturbed() != nil
}

// maxRest is how long the turn waits for a proposer that works past its deadline. After
// that the proposer is stuck. Other studies take their turns, and nothing is prepared
// with the stuck proposer until it has finished.
const maxRest = time.Minute

// rest waits until the proposer is idle or stuck.
func (g *suggester) rest(ctx context.Context) {
	select {
	case g.busy <- struct{}{}:
		g.free()
		return
	case <-ctx.Done():
		return
	case <-time.After(maxRest):
	}
	g.stuck.Store(true)
	select { // it may have just become idle
	case g.busy <- struct{}{}:
		g.free()
	default:
	}
}

// prepare makes the suggestion for the next ask of the study in v. It stops after the
// model if a call waits, and that call then finds the model made.
func (g *suggester) prepare(ctx context.Context, v *study.View, wanted func() bool) error {
	a, err := g.anchor(ctx, v)
	if err != nil || wanted() {
		return err
	}
	made, err := work(ctx, g, func(ctx context.Context) (*prepared, error) {
		var view propose.View = v
		if a != nil {
			view = propose.WithAnchor(v, *a)
		}
		p, err := g.proposer.Propose(ctx, view, 1)
		return &prepared{view.Position(), v.Trials(), p}, err
	})
	if err == nil {
		g.ready.Store(made)
	}
	return err
}

// takePrepared returns the suggestion prepared for v, if there is one.
func (g *suggester) takePrepared(v *study.View, n int) (propose.Proposal, bool) {
	made := g.ready.Load()
	if n != 1 || made == nil || made.position != v.Position() || made.trial != v.Trials() {
		return propose.Proposal{}, false
	}
	return made.proposal, true
}
