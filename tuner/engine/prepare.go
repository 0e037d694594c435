package engine

import (
	"context"
	"time"

	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

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
// decides nothing.
func (p *proposer) prepare() {
	if !p.options.LongLived || !p.preparing.CompareAndSwap(false, true) {
		return
	}
	p.work.Go(func() {
		defer p.preparing.Store(false)
		if p.log.suggester().stuck.Load() || !p.turns.take(p.ctx) {
			return
		}
		defer p.turns.pass()
		g, view := p.toPrepare()
		if view == nil {
			return
		}
		if err := g.prepare(p.ctx, view, p.wanted); err != nil && p.ctx.Err() == nil {
			p.options.Logger.Debug("no suggestion was prepared", "study", p.name, "error", err)
		}
		g.rest(p.ctx)
	})
}

// toPrepare returns the study to prepare a suggestion for. The view is nil if there is
// nothing to prepare.
func (p *proposer) toPrepare() (*suggester, *study.View) {
	p.log.mu.Lock()
	defer p.log.mu.Unlock()
	v, err := p.log.current()
	status, _ := v.study.Status()
	if _, models := v.suggester.proposer.(propose.Anchorer); !models || err != nil || status != study.StatusActive {
		return v.suggester, nil
	}
	return v.suggester, v.study.Snapshot()
}

// wanted reports whether preparation should stop early. It should if any study has an
// ask, or if a call waits to consult this study's proposer.
func (p *proposer) wanted() bool {
	return p.consulting.Load() > 0 || p.turns.disturbed() != nil
}

// maxRest is how long the turn waits for a proposer that works past its deadline. After
// that the proposer is stuck. Other studies take their turns, and nothing is prepared
// with the stuck proposer until it has finished.
const maxRest = time.Minute

// rest waits until the proposer is idle or stuck.
func (g *suggester) rest(ctx context.Context) {
	timer := time.NewTimer(maxRest)
	defer timer.Stop()
	select {
	case g.busy <- struct{}{}:
		g.free()
		return
	case <-ctx.Done():
		return
	case <-timer.C:
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
	a, due, err := g.anchor(ctx, v)
	if err != nil || wanted() {
		return err
	}
	made, err := work(ctx, g, func(ctx context.Context) (*prepared, error) {
		var view propose.View = v
		if due {
			view = propose.WithAnchor(v, a)
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
