package learners

import (
	"context"
	"errors"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Estimator is an algorithm with its hyper-parameters. It is a plain value, the Params
// of its package.
type Estimator interface {
	// Validate returns a *ParameterError for the first hyper-parameter out of
	// range. Fit calls it.
	Validate() error
	// Fit learns from the n rows of train, each with d inputs and c ≥ 1 targets.
	//
	// If ctx ends, Fit returns its error and the best model so far, or nil if there is
	// none. If o.Progress returns ErrStop, it returns that model without an error.
	Fit(ctx context.Context, train data.Source, o Options) (Model, error)
}

// Model is a function from inputs to c outputs. It is immutable and safe for concurrent use.
type Model interface {
	// Dim returns d.
	Dim() int
	Outputs() int
	// Predict sets dst, n×c row-major, to the outputs for the n rows of x. It streams over x.
	Predict(ctx context.Context, dst []float64, x kernel.Source) error
}

// Options are what all fits have in common. The zero Options are ready to use.
type Options struct {
	// Seed is the seed of all random choices.
	Seed uint64
	// Workers is the number of goroutines, or 0 for one per processor. It does not
	// change the model.
	Workers int
	// Weights are weights s_i ≥ 0 of the training rows, or nil for 1 each. A row of weight 0
	// has no part in the fit, and the loss of another one counts s_i/s̄ times, with the mean
	// s̄. A fit with whole weights is that of rows that occur as often, up to rounding, or in
	// distribution where rows are drawn. Defaults that depend on n take them as numbers of rows,
	// except those of sgdrf for mini-batches.
	Weights []float64
	// Validation, if not nil, is held-out data. Its error is measured once per
	// iteration, and the iterate with the least error becomes the model.
	Validation data.Source
	// Measure is the error to measure on Validation, or nil for RMSE. It knows the
	// weights of the validation rows, see Scoring.
	Measure Measure
	// Patience, if positive, ends the fit after that many iterations without a smaller
	// validation error.
	Patience int
	// Progress, if not nil, is called after every iteration or pass, from the goroutine of Fit.
	// An error ends the fit. ErrStop ends it without an error, and Fit returns any other error.
	Progress func(Progress) error
}

// Measure is an error of outputs against targets, both n×c row-major. Smaller is better.
type Measure func(outputs, targets []float64, c int) float64

// Progress says how far a fit has come.
type Progress struct {
	// Iteration counts from 1. Iterations is how many there will be at most.
	Iteration, Iterations int
	// Passes counts passes over the training data so far. A mini-batch counts for its share.
	Passes float64
	// Rows is the number of training rows processed so far.
	Rows int64
	// Objective is the quantity that the algorithm minimises on the training data.
	// Residual is the relative residual of its linear system. Each is NaN if not known.
	Objective, Residual float64
	// ValidationError is o.Measure on o.Validation, or NaN without validation data.
	ValidationError float64
	// Best says that this iterate has the least validation error so far.
	Best bool
	// Notes inform the user of corrected numbers and of limits that were reached. Each
	// note appears once.
	Notes []string
	// Snapshot returns the model of this iterate. It is valid during the call
	// of Options.Progress only, and costs about as much as a copy.
	Snapshot func() (Model, error)
}

// Options.Progress returns ErrStop to end a fit and keep its model.
var ErrStop = errors.New("learners: stop and keep the model")

// ParameterError reports a hyper-parameter out of range.
type ParameterError = kernel.ParameterError
