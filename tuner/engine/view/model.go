package view

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/propose/explain"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// bestPart is the part of trials that count as the best, and leastCompleted how many there
// must be.
const (
	bestPart       = 0.1
	leastCompleted = 10
)

// Importances are those of a study's models, by objective. They are computed once for each
// model event.
type Importances struct {
	mu     sync.Mutex
	models map[int]modelImportance
}

type modelImportance struct {
	position study.Position
	results  int
	shares   []explain.Share
}

// Importance says how much each parameter matters for an objective. freeze returns the
// study's model, which is nil if there is none, its state, and how many results it needs.
func Importance(ctx context.Context, v *study.View, q tuner.ImportanceQuery, c *Columns, known *Importances, freeze func() (*propose.Frozen, surrogate.State, int, error)) (out tuner.Importance, err error) {
	spec := v.Spec()
	objective, err := objectiveOf(spec, q.Objective)
	if err != nil {
		return out, err
	}
	out.Objective = spec.Objectives[objective].Name
	nan := math.NaN()
	for _, a := range spec.Space.Axes() {
		out.Parameters = append(out.Parameters, tuner.ParameterImportance{Parameter: a.Parameter, First: nan, Total: nan, FirstError: nan, TotalError: nan, Data: nan})
	}
	if q.Method != tuner.ImportanceModel {
		if err := byData(v, c, objective, &out); err != nil {
			return out, err
		}
	}
	if q.Method != tuner.ImportanceData {
		var m *propose.Frozen
		if m, out.State, out.Missing, err = freeze(); err == nil && m != nil {
			err = known.byModel(ctx, m, spec, objective, &out)
		}
		if q.Method == tuner.ImportanceBoth && tuner.CodeOf(err) == tuner.Unsupported {
			err = nil // the data have importances
		}
	}
	return out, err
}

// objectiveOf returns the number of the named objective.
func objectiveOf(spec study.Spec, name string) (int, error) {
	if name == "" {
		return 0, nil
	}
	i := slices.IndexFunc(spec.Objectives, func(o study.Objective) bool { return o.Name == name })
	if i < 0 {
		var names []string
		for _, o := range spec.Objectives {
			names = append(names, o.Name)
		}
		return 0, &study.InvalidError{Field: "objective", Value: fmt.Sprintf("%.60q", name), Rule: fmt.Sprintf("must be one of %v", names)}
	}
	return i, nil
}

// byData adds the importances by the data.
func byData(v *study.View, columns *Columns, objective int, out *tuner.Importance) error {
	sp := v.Spec().Space
	o := v.Spec().Objectives[objective]
	chosen, err := Choose(columns.Readers(v.Spec()), []string{"state", "value/" + o.Name, "parameter/"})
	if err != nil {
		return err
	}
	c, err := columns.At(v, chosen, nil)
	if err != nil {
		return err
	}
	state, value, parameters := &c.Columns[0], &c.Columns[1], c.Columns[2:]
	var samples []explain.Sample
	for i := range c.Rows {
		y := value.At(i)
		if state.At(i) != float64(study.Completed) || math.IsNaN(y) {
			continue
		}
		s := explain.Sample{X: make([]float64, sp.Dim()), Active: make([]bool, sp.Dim()), Value: y}
		for j := range parameters {
			u := parameters[j].At(i)
			s.X[j], s.Active[j] = u/tuner.LargestCoordinate, u != tuner.InactiveCoordinate
		}
		samples = append(samples, s)
	}
	if out.Completed = len(samples); len(samples) < leastCompleted {
		return nil
	}
	for j, share := range explain.Shift(sp, samples, o.Direction, bestPart) {
		out.Parameters[j].Data = share
	}
	return nil
}

// byModel adds the importances by the model. Callers that want the same wait for one
// computation.
func (i *Importances) byModel(ctx context.Context, m *propose.Frozen, spec study.Spec, objective int, out *tuner.Importance) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	known, ok := i.models[objective]
	if !ok || known.position != m.Position {
		shares, err := explain.Model(ctx, m, spec.Space, objective)
		if err != nil {
			return err
		}
		known = modelImportance{m.Position, m.Results, shares}
		if i.models == nil {
			i.models = make(map[int]modelImportance)
		}
		i.models[objective] = known
	}
	out.Position, out.Results = known.position, known.results
	for j, s := range known.shares {
		p := &out.Parameters[j]
		p.First, p.Total, p.FirstError, p.TotalError = s.First, s.Total, s.FirstError, s.TotalError
	}
	return nil
}

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
