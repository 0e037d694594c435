package minibatch

import (
	"cmp"
	"math"

	"github.com/bkbtuner/bkb/learners"
)

// Settings are the hyper-parameters that stochastic gradient learners share. A learner
// leaves the fields that it does not have at zero.
type Settings struct {
	Features  int     // in a step or in the model, 0 for the default
	BatchSize int     // b, 0 for the default
	Passes    int     // over the data, 0 for the default
	Chunk     int     // the chunk of Plan
	StepSize  float64 // γ, 0 for the default
	StepDecay float64 // θ in γt^−θ
	Lambda    float64 // λ ≥ 0 per sample
	Sampling  Sampling
}

// Validate returns a *learners.ParameterError for the first setting out of range.
func (s Settings) Validate(algorithm string) error {
	count := func(name string, v int) error {
		return learners.Require(v >= 0, algorithm, name, v, "at least 1, or 0 for the default")
	}
	return cmp.Or(
		count("features", s.Features), count("batch size", s.BatchSize), count("passes", s.Passes), count("chunk", s.Chunk),
		learners.NotNegative(algorithm, "step size", s.StepSize),
		learners.NotNegative(algorithm, "lambda", s.Lambda),
		learners.Require(s.StepDecay >= 0 && s.StepDecay < 1, algorithm, "step decay", s.StepDecay, "in [0, 1)"),
		s.Sampling.Check(algorithm),
	)
}

// Check returns a *learners.ParameterError unless s is one of the three.
func (s Sampling) Check(algorithm string) error {
	ok := s == Replacement || s == Reshuffle || s == Cycle
	return learners.Require(ok, algorithm, "sampling", s, "replacement, reshuffle or cycle")
}

// Rows returns the plan of a method that steps row by row and reads block rows at a time.
func (s Settings) Rows(block int) Plan {
	return Plan{Sampling: s.Sampling, BatchSize: block, Exact: true, Chunk: s.Chunk}
}

// Batches returns the plan of a method that steps on mini-batches of b rows.
func (s Settings) Batches(b int) Plan {
	return Plan{Sampling: s.Sampling, BatchSize: b, Chunk: s.Chunk}
}

// Decayed returns γt^−θ, the size of step t = 1, 2, …
func (s Settings) Decayed(step float64, t int) float64 {
	if s.StepDecay > 0 {
		step *= math.Pow(float64(t), -s.StepDecay)
	}
	return step
}

// divergence is the largest allowed ratio of the loss of an iteration to the loss of
// the function 0. Iterates that converge stay below 1 up to noise.
const divergence = 100

// CheckLoss returns a *learners.DivergenceError if loss is not finite or far above zero. loss is
// the sum over the rows of an iteration, and zero is the loss of the function 0.
func CheckLoss(algorithm string, iteration int, loss, zero float64) error {
	if loss-loss != 0 || loss > divergence*zero {
		return &learners.DivergenceError{Algorithm: algorithm, Iteration: iteration, Remedy: "a smaller step size"}
	}
	return nil
}
