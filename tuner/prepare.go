package tuner

import (
	"context"

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
// before it, if nobody is at it and no ask waits: after a tell, and when a study was
// loaded. Nothing is decided by it: the suggestion is served if an ask sees the very
// same study, and else forgotten.
func (d *desk) prepare() {
	if !d.t.options.LongLived || len(d.asks) > 0 || d.proposing.Load() || !d.preparing.CompareAndSwap(false, true) {
		return
	}
	d.mu.Lock()
	g := d.suggester
	_, models := g.proposer.(propose.Anchorer)
	status, _ := d.s.Status()
	ready := models && d.broken == nil && status == study.StatusActive
	var view *study.View
	if ready {
		view = d.s.Snapshot()
	}
	d.mu.Unlock()
	if !ready {
		d.preparing.Store(false)
		return
	}
	d.t.work.Go(func() {
		defer d.preparing.Store(false)
		if err := g.prepare(d.ctx, view, d.proposing.Load); err != nil && d.ctx.Err() == nil {
			d.t.options.Logger.Debug("no suggestion was prepared", "study", d.name, "error", err)
		}
	})
}

// prepare makes the suggestion for the next ask of the study as it is in v. In
// between it makes way if an ask waits, which finds the model made.
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
