package tuner

import (
	"context"
	"time"

	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// prepared is a suggestion made before anybody asked.
type prepared struct {
	position study.Position // of the view it was made for
	trial    int
	proposal propose.Proposal
}

// prepare makes the next suggestion in the background, with the model that is due
// before it, when it is the study's turn: after a tell, and when the first worker
// calls after the study was loaded. Who only reads has nothing prepared. Nothing is
// decided by it: the suggestion is served if an ask sees the very same study, and
// else forgotten.
func (d *desk) prepare() {
	if !d.t.options.LongLived || !d.preparing.CompareAndSwap(false, true) {
		return
	}
	d.t.work.Go(func() {
		defer d.preparing.Store(false)
		if d.stuck() || !d.t.turns.take(d.ctx) {
			return
		}
		defer d.t.turns.pass()
		g, view := d.toPrepare()
		if view == nil {
			return
		}
		if err := g.prepare(d.ctx, view, d.wanted); err != nil && d.ctx.Err() == nil {
			d.t.options.Logger.Debug("no suggestion was prepared", "study", d.name, "error", err)
		}
		g.rest(d.ctx)
	})
}

// toPrepare returns the study that a suggestion is to be prepared for; the view is
// nil if there is nothing to prepare.
func (d *desk) toPrepare() (*suggester, *study.View) {
	d.mu.Lock()
	defer d.mu.Unlock()
	g := d.suggester
	status, _ := d.s.Status()
	if _, models := g.proposer.(propose.Anchorer); !models || d.broken != nil || status != study.StatusActive {
		return g, nil
	}
	return g, d.s.Snapshot()
}

// wanted tells whether what prepares should make way: for an ask of any study, or
// for who waits to consult this one's proposer.
func (d *desk) wanted() bool {
	return d.consulting.Load() > 0 || d.t.turns.disturbed() != nil
}

// maxRest is how long the turn waits for a proposer that goes on with what took longer
// than it had. Then it is stuck, others take their turns, and nothing more is prepared
// with it until it is done.
const maxRest = time.Minute

// rest waits until the proposer is at work on nothing, or is stuck.
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
	select { // in case that it was done at this very moment
	case g.busy <- struct{}{}:
		g.free()
	default:
	}
}

// prepare makes the suggestion for the next ask of the study as it is in v. In
// between it makes way for those that wait, who find the model made.
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

// takePrepared returns the suggestion that was prepared for v, if one was.
func (g *suggester) takePrepared(v *study.View, n int) (propose.Proposal, bool) {
	made := g.ready.Load()
	if n != 1 || made == nil || made.position != v.Position() || made.trial != v.Trials() {
		return propose.Proposal{}, false
	}
	return made.proposal, true
}
