package actor

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/study"
)

// consult calls f with the study's proposer and the stored study. It takes turns with
// suggestions, so that the proposer sees one history.
func (q *queue) consult(ctx context.Context, f func(p propose.Proposer, v *study.View) error) (err error) {
	g := q.log.suggester()
	q.consulting.Add(1)
	select {
	case g.busy <- struct{}{}:
		q.consulting.Add(-1)
		defer g.free()
	case <-ctx.Done():
		q.consulting.Add(-1)
		return ctx.Err()
	}
	v, err := q.log.snapshot(ctx)
	if err != nil {
		return err
	}
	defer recovered(&err)
	return f(g.proposer, v)
}

// recommendation is what the proposer recommended at a state of the study.
type recommendation struct {
	of     results
	trials []int
}

// results identify the results of a study and its model.
type results struct {
	proposer propose.Proposer // of the live study
	ended    [study.Pruned + 1]int
	late     int
	model    study.Position
}

func resultsOf(p propose.Proposer, v *study.View) results {
	r := results{proposer: p, late: v.LateResults()}
	for s := study.Completed; s <= study.Pruned; s++ {
		r.ended[s] = v.Count(s)
	}
	if a, ok := v.Anchor(v.Position()); ok {
		r.model = a.Effective
	}
	return r
}

// recommend returns the stored study and the trials that its proposer recommends. There
// are none if the proposer cannot recommend any. The proposer is consulted once for the
// same results, and suggestions are made while the trials are compared.
func (q *queue) recommend(ctx context.Context) (view *study.View, trials []int, err error) {
	select { // one call at a time, because the next one needs no more than this one
	case q.recommending <- struct{}{}:
		defer func() { <-q.recommending }()
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	}
	if view, err = q.log.snapshot(ctx); err != nil {
		return nil, nil, err
	}
	if last := q.recommended; last.of == resultsOf(q.log.suggester().proposer, view) {
		return view, last.trials, nil
	}
	var of results
	choose := func() []int { return nil }
	err = q.consult(ctx, func(p propose.Proposer, v *study.View) (err error) {
		view, of = v, resultsOf(p, v)
		if model, ok := p.(propose.Modeler); ok {
			choose, err = model.Recommend(ctx, v)
		}
		return err
	})
	if err == nil {
		trials, err = chosen(choose)
	}
	switch {
	case err == nil:
		q.recommended = recommendation{of, trials}
	case of.proposer == nil || ctx.Err() != nil:
		return nil, nil, err
	default:
		q.env.Logger.Info("the proposer gave no recommendation, so the best measured trials are recommended", "study", q.log.name, "error", err)
	}
	return view, trials, nil
}

// chosen calls choose.
func chosen(choose func() []int) (trials []int, err error) {
	defer recovered(&err)
	return choose(), nil
}

// recovered turns a panic of a proposer into an error.
func recovered(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("the proposer panicked: %v", r)
	}
}

// foretell completes a verdict that needs the forecast of the proposer's model. If
// there is no forecast in time, the trial continues.
func (q *queue) foretell(ctx context.Context, n int, v *tuner.Verdict) {
	q.log.mu.Lock()
	guide, guided := q.log.state.pruner.(prune.Guided)
	var width float64
	if guided {
		width, guided = guide.Wants(n)
	}
	q.log.mu.Unlock()
	if !guided || v.Stop {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, q.env.ProposeTimeout)
	defer cancel()
	err := q.consult(ctx, func(r propose.Proposer, view *study.View) error {
		m, can := r.(propose.Modeler)
		if !can {
			return nil
		}
		f, ok, err := m.Forecast(ctx, view, n, width)
		if err == nil && ok {
			d := guide.Judge(prune.Forecast(f))
			v.Stop, v.Reason = d.Stop, d.Reason
		}
		return err
	})
	if err != nil && q.log.ctx.Err() == nil {
		q.env.Logger.Info("no forecast from the model, so the trial continues", "study", q.log.name, "trial", n, "error", err)
	}
}
