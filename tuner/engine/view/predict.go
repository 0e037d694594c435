package view

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/propose/explain"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Predict adds what a query asks for to the answer of a model, which is nil if there is none.
// best recommends trials.
func Predict(ctx context.Context, m *propose.Frozen, v *study.View, q tuner.PredictQuery, out tuner.Predictions, best func(context.Context) ([]study.Trial, error)) (tuner.Predictions, error) {
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
	} else if trials, failed := best(ctx); failed != nil {
		err = failed
	} else if len(trials) > 0 {
		out.Through, out.Trial = trials[0].Config, trials[0].Number
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
