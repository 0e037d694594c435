package actor

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
func (q *queue) prepare() {
	if !q.env.LongLived || !q.preparing.CompareAndSwap(false, true) {
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
	if _, models := v.suggester.proposer.(propose.Anchorer); !models || err != nil || status != study.StatusActive {
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
