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
