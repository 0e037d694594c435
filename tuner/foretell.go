package tuner

import (
	"context"

	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/prune"
	"github.com/bkbtuner/bkb/tuner/study"
)

// foretell completes a verdict that a pruner cannot give without the proposer's
// model. Of the study as it stands, stored; where the model has no answer, or not
// in time, the trial goes on.
func (d *desk) foretell(ctx context.Context, n int, v *Verdict) {
	d.mu.Lock()
	guide, guided := d.pruner.(prune.Guided)
	var width float64
	if guided {
		width, guided = guide.Wants(n)
	}
	d.mu.Unlock()
	if !guided || v.Stop {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, d.t.options.ProposeTimeout)
	defer cancel()
	err := d.consult(ctx, func(p propose.Proposer, view *study.View) error {
		m, can := p.(propose.Forecaster)
		if !can {
			return nil
		}
		f, ok, err := m.Forecast(ctx, view, n, width)
		if err == nil && ok {
			p := guide.Judge(prune.Forecast(f))
			v.Stop, v.Reason = p.Stop, p.Reason
		}
		return err
	})
	if err != nil && d.ctx.Err() == nil {
		d.t.options.Logger.Warn("the model gave no forecast; the trial goes on", "study", d.name, "trial", n, "error", err)
	}
}
