package engine

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/propose/explain"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Predict implements [tuner.Service].
func (t *Engine) Predict(ctx context.Context, name string, q tuner.PredictQuery) (tuner.Predictions, error) {
	out := tuner.Predictions{Trial: tuner.NoTrial}
	m, v, err := t.freeze(ctx, name, &out)
	if err != nil {
		return out, err
	}
	sp := v.Spec().Space
	parameters, points, err := resolve(q.Slices, sp)
	if err != nil {
		return out, err
	}
	if n := len(q.Configs) + len(parameters)*points; n > tuner.MaxPredictions {
		return out, &study.InvalidError{Field: "configs", Value: fmt.Sprint(n), Rule: fmt.Sprintf("at most %d predictions in one call", tuner.MaxPredictions), Remedy: "predict in several calls"}
	}
	configs := make([]space.Config, len(q.Configs))
	for i, c := range q.Configs {
		if configs[i], err = sp.Complete(c); err != nil {
			return out, fmt.Errorf("configuration %d: %w", i, err)
		}
	}
	if m == nil {
		return out, nil
	}
	if out.Configs, err = m.Predict(configs); err != nil {
		return out, err
	}
	if q.Slices == nil {
		return out, nil
	}
	if q.Slices.Through != nil {
		out.Through, err = sp.Complete(*q.Slices.Through)
	} else {
		out.Through, out.Trial, err = t.recommended(ctx, name)
	}
	if err != nil || out.Trial == tuner.NoTrial && q.Slices.Through == nil {
		return out, err
	}
	for _, p := range parameters {
		if _, active := out.Through.Get(p); !active {
			continue
		}
		if err := ctx.Err(); err != nil {
			return out, err
		}
		s, err := explain.Along(m, sp, out.Through, p, points)
		if err != nil {
			return out, err
		}
		out.Slices = append(out.Slices, s)
	}
	return out, nil
}

// freeze returns the model of a study, which is nil if there is none, and the study as it
// stands. It fills the state of the model. Predictions need no turn of the proposer then.
func (t *Engine) freeze(ctx context.Context, name string, out *tuner.Predictions) (m *propose.Frozen, v *study.View, err error) {
	err = t.with(ctx, name, func(d *desk) (err error) {
		m, v, err = d.freeze(ctx, out)
		return err
	})
	return m, v, err
}

func (d *desk) freeze(ctx context.Context, out *tuner.Predictions) (m *propose.Frozen, v *study.View, err error) {
	err = d.proposer.consult(ctx, func(p propose.Proposer, view *study.View) (err error) {
		v = view
		predictor, can := p.(propose.Predictor)
		if !can {
			return fmt.Errorf("a model of the proposer %s: %w", v.Spec().Proposer.Name, tuner.ErrUnsupported)
		}
		m, out.State, out.Missing, err = predictor.Freeze(ctx, v)
		out.Position = v.Position()
		if m != nil {
			out.Results = m.Results
		}
		return err
	})
	return m, v, err
}

// recommended returns the configuration of the first recommended trial.
func (t *Engine) recommended(ctx context.Context, name string) (space.Config, int, error) {
	best, err := t.Best(ctx, name)
	if err != nil || len(best) == 0 {
		return space.Config{}, tuner.NoTrial, err
	}
	return best[0].Config, best[0].Number, nil
}

// resolve returns the parameters and the points of each slice.
func resolve(q *tuner.SliceQuery, sp *space.Space) (parameters []string, points int, err error) {
	if q == nil {
		return nil, 0, nil
	}
	if points = q.Points; points == 0 {
		points = tuner.DefaultSlicePoints
	}
	if points < 2 || points > tuner.MaxSlicePoints {
		return nil, 0, &study.InvalidError{Field: "slices.points", Value: fmt.Sprint(points), Rule: fmt.Sprintf("must be 2 to %d", tuner.MaxSlicePoints)}
	}
	for _, p := range q.Parameters {
		if _, varies := sp.Coordinate(p); !varies {
			return nil, 0, &study.InvalidError{Field: "slices.parameters", Value: fmt.Sprintf("%.60q", p), Rule: "the space has no such parameter that varies"}
		}
	}
	if parameters = q.Parameters; len(parameters) == 0 {
		for _, a := range sp.Axes() {
			parameters = append(parameters, a.Parameter)
		}
	}
	return parameters, points, nil
}
