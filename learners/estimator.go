package learners

import (
	"context"
	"errors"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Estimator is an algorithm with its hyper-parameters: a plain value, the Params
// of its package.
type Estimator interface {
	// Validate returns a *ParameterError for the first hyper-parameter out of
	// range. Fit calls it.
	Validate() error
	// Fit learns from the n rows of train, d inputs and c ≥ 1 targets each.
	//
	// If ctx ends, Fit returns its error and the best model so far, nil if there
	// is none. If o.Progress returns ErrStop, it returns that model without an
	// error.
	Fit(ctx context.Context, train data.Source, o Options) (Model, error)
}

// Model is a function from inputs to c outputs. It is immutable and safe for
// concurrent use.
type Model interface {
	// Dim returns d, Outputs c.
	Dim() int
	Outputs() int
	// Predict sets dst, n×c row-major, to the outputs for the n rows of x. It
	// streams over x.
	Predict(ctx context.Context, dst []float64, x kernel.Source) error
}

// Options are what all fits have in common. The zero Options are ready to use.
type Options struct {
	// Seed is the seed of all random choices.
	Seed uint64
	// Workers is the number of goroutines, 0 for one per processor. It changes
	// no bit of the model.
	Workers int
	// Validation, if not nil, is held-out data: its error is measured once per
	// iteration, and the iterate with the least error becomes the model.
	Validation data.Source
	// Measure is the error to measure on Validation; nil stands for RMSE.
	Measure Measure
	// Patience, if positive, ends the fit after so many iterations without a
	// smaller validation error.
	Patience int
	// Progress, if not nil, is called after every iteration or pass, from the
	// goroutine of Fit. An error ends the fit: ErrStop well, others as the error
	// of Fit.
	Progress func(Progress) error
}

// Measure is an error of outputs against targets, both n×c row-major; smaller
// is better.
type Measure func(outputs, targets []float64, c int) float64

// Progress is how far a fit has come.
type Progress struct {
	// Iteration counts from 1. Iterations is how many there will be at most.
	Iteration, Iterations int
	// Passes is how often the training data have been read by now; a mini-batch
	// counts for its share.
	Passes float64
	// Rows is the number of training rows that were processed by now.
	Rows int64
	// Objective is what the algorithm makes small on the training data and
	// Residual the relative residual of its linear system; NaN if not known.
	Objective, Residual float64
	// ValidationError is o.Measure on o.Validation; NaN if there is none.
	ValidationError float64
	// Best says that this iterate has the least validation error so far.
	Best bool
	// Notes are what the user should know, each said once: numbers that were
	// mended, limits that were reached.
	Notes []string
	// Snapshot returns the model of this iterate. It is valid during the call
	// of Options.Progress only, and costs about as much as a copy.
	Snapshot func() (Model, error)
}

// ErrStop is what Options.Progress returns to end a fit and keep its model.
var ErrStop = errors.New("learners: stop and keep the model")

// ParameterError is a hyper-parameter out of range.
type ParameterError = kernel.ParameterError
