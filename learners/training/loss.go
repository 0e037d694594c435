package training

import (
	"encoding/json"
	"slices"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/sgdrf"
)

// huberRatio times the standard deviation of normal errors is the usual δ, for an
// efficiency of 95 % (Huber 1964).
const huberRatio = 1.345

func (r reader) loss() learners.Loss { return word[learners.Loss](r, "loss", squared) }

func (r reader) delta(p Problem) float64 { return r.real("delta", huberRatio*p.Spread) }

// hasLosses reports whether the algorithm has robust losses.
func (a *Algorithm) hasLosses() bool { return slices.Contains(a.names(), "loss") }

// withLoss returns the estimator e of the squared loss with the loss of the values.
// FALKON then takes as many Newton steps as it needs, with up to the given number of
// iterations each.
func (r reader) withLoss(e learners.Estimator, p Problem) (learners.Estimator, error) {
	if !r.a.hasLosses() || r.loss() == learners.SquaredLoss {
		return e, nil
	}
	if p.Task == data.Classification {
		return nil, r.a.refused("loss", r.text("loss"), squared+" for classes; for probabilities use log-falkon")
	}
	switch e := e.(type) {
	case falkon.Params:
		robust := falkon.RobustParams{Params: e, Loss: r.loss(), Delta: r.delta(p), Quantile: r.real("quantile", 0), Steps: e.Iterations}
		robust.Iterations, robust.Tolerance = 0, 0
		return robust, nil
	case sgdrf.Params:
		e.Loss, e.Delta, e.Quantile = r.loss(), r.delta(p), r.real("quantile", 0)
		return e, nil
	}
	return e, nil
}

// Scoring says how the outputs of models with these hyper-parameters are measured, with
// rows that count alike. If the values are those that [Algorithm.Used] returns, the
// problem has no effect.
func (a *Algorithm) Scoring(v Values, p Problem) learners.Scoring {
	r := reader{a, v}
	switch {
	case a.hasLosses():
		return learners.Scoring{Loss: r.loss(), Delta: r.delta(p), Quantile: r.real("quantile", 0)}
	case a.Name != logFalkon.Name:
		return learners.Scoring{}
	case r.text("multiclass") == oneVsRest:
		return learners.Scoring{Link: learners.Logistic}
	}
	return learners.Scoring{Link: learners.Softmax}
}

// ScoringOf is Scoring for the hyper-parameters of a model file. It is the zero Scoring
// if the file does not tell them.
func ScoringOf(f *learners.File) learners.Scoring {
	a, err := Find(f.Algorithm)
	v := Values{}
	if err != nil || json.Unmarshal(f.Params, &v) != nil || a.Check(v) != nil {
		return learners.Scoring{}
	}
	return a.Scoring(v, Problem{})
}
