package engine

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Diagnose implements [tuner.Service].
func (t *Engine) Diagnose(ctx context.Context, name string) (diagnosis surrogate.Diagnosis, err error) {
	err = t.with(ctx, name, func(d *desk) error {
		return d.proposer.consult(ctx, func(p propose.Proposer, v *study.View) (err error) {
			m, can := p.(propose.Diagnoser)
			if !can {
				return fmt.Errorf("a model of the proposer %s: %w", v.Spec().Proposer.Name, tuner.ErrUnsupported)
			}
			diagnosis, err = m.Diagnose(ctx, v)
			return err
		})
	})
	return diagnosis, err
}
