package training

import (
	"encoding/json"
	"strconv"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/sgdrf"
)

// squared is the name of learners.SquaredLoss, which is empty.
const squared = "squared"

// lossParameters are for algorithms with robust losses.
var lossParameters = []Parameter{
	{
		Name: "loss", Kind: Choice, Default: squared, Choices: []string{squared, string(learners.HuberLoss), string(learners.QuantileLoss)},
		Doc: "the loss of numbers",
	},
	{
		Name: "delta", Kind: Real, Positive: true, Default: Auto, Auto: "1.345 times the spread of targets",
		Doc: "the residual from which the Huber loss is linear",
	},
	{Name: "quantile", Kind: Real, Positive: true, Default: "0.5", Doc: "the quantile τ of the quantile loss"},
}

// huberRatio times the standard deviation of normal errors is the usual δ, for an
// efficiency of 95 % (Huber 1964).
const huberRatio = 1.345

func (r reader) loss() learners.Loss {
	if l := r.text("loss"); l != squared {
		return learners.Loss(l)
	}
	return learners.SquaredLoss
}

func (r reader) delta(p Problem) float64 { return r.real("delta", huberRatio*p.Spread) }

// hasLosses reports whether the algorithm has lossParameters.
func (a *Algorithm) hasLosses() bool { return a.Name == falkonAlgorithm.Name || a.Name == sgdRF.Name }

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
	case r.multiclass() == falkon.OneVsRest:
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

// setLoss sets δ.
func (u used) setLoss() {
	if u.a.hasLosses() && u.auto("delta") {
		u.v["delta"] = strconv.FormatFloat(u.delta(u.p), 'g', -1, 64)
	}
}
