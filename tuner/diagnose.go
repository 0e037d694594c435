package tuner

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Diagnose implements [Service].
func (t *Tuner) Diagnose(ctx context.Context, name string) (diagnosis propose.Diagnosis, err error) {
	err = t.with(ctx, name, func(d *desk) error {
		return d.consult(ctx, func(p propose.Proposer, v *study.View) (err error) {
			m, can := p.(propose.Diagnoser)
			if !can {
				return fmt.Errorf("a model of the proposer %s: %w", v.Spec().Proposer.Name, ErrUnsupported)
			}
			diagnosis, err = m.Diagnose(ctx, v)
			return err
		})
	})
	return diagnosis, err
}

// consult calls f with the proposer and the study as it stands, stored, in turn
// with suggestions, so that the proposer sees one history.
func (d *desk) consult(ctx context.Context, f func(p propose.Proposer, v *study.View) error) (err error) {
	d.mu.Lock()
	g := d.suggester
	d.mu.Unlock()
	d.consulting.Add(1)
	select {
	case g.busy <- struct{}{}:
		d.consulting.Add(-1)
		defer g.free()
	case <-ctx.Done():
		d.consulting.Add(-1)
		return ctx.Err()
	}
	var v *study.View
	if err := d.read(ctx, func(s *study.Study) { v = s.Snapshot() }); err != nil {
		return err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the proposer panicked: %v", r)
		}
	}()
	return f(g.proposer, v)
}
