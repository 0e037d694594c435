package learners

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Monitor follows an iterative fit for its estimator. It measures validation errors,
// keeps the best iterate, calls Options.Progress and decides when to stop. A fit returns what
// Finish returns, after an error or when Step says so.
// Only one goroutine may use it.
type Monitor struct {
	algorithm  string
	iterations int
	o          Options
	measure    Measure
	targets    []float64 // of Validation
	outputs    []float64 // on Validation

	best      Model
	bestError float64
	bestAt    int
	last      func() (Model, error)
	lastAt    int
}

// Iterate is one finished iteration or pass.
type Iterate struct {
	Iteration int // counts from 1
	Passes    float64
	Rows      int64
	// Objective and Residual are NaN if not known. An infinite value means that the
	// iteration diverges.
	Objective, Residual float64
	// Notes are for Progress.
	Notes []string
	// Model returns a copy of the model of this iterate, which later iterations do not change.
	// Until the next Step it must return the same model, even after an iteration failed halfway.
	Model func() (Model, error)
}

// NewMonitor verifies the data as Check does and reads the targets of o.Validation.
func NewMonitor(ctx context.Context, algorithm string, iterations int, train data.Source, o Options) (*Monitor, error) {
	if err := Check(train, o); err != nil {
		return nil, err
	}
	m := &Monitor{algorithm: algorithm, iterations: iterations, o: o, measure: o.Measure, bestError: math.NaN()}
	if m.measure == nil {
		m.measure = RMSE
	}
	if o.Validation != nil {
		y, err := Targets(ctx, o.Validation)
		if err != nil {
			return nil, err
		}
		m.targets, m.outputs = y, make([]float64, len(y))
	}
	return m, nil
}

// Step records an iterate and says whether the fit must stop. An error of the measurement, of
// Progress or of ctx also ends the fit. In both cases the estimator returns m.Finish(err).
func (m *Monitor) Step(ctx context.Context, it Iterate) (stop bool, err error) {
	if math.IsInf(it.Objective, 0) || math.IsInf(it.Residual, 0) {
		return true, m.diverged(it.Iteration)
	}
	it.Model = sync.OnceValues(it.Model)
	p := Progress{
		Iteration: it.Iteration, Iterations: m.iterations, Passes: it.Passes, Rows: it.Rows,
		Objective: it.Objective, Residual: it.Residual, ValidationError: math.NaN(), Notes: it.Notes, Snapshot: it.Model,
	}
	if m.targets != nil {
		if p.ValidationError, err = m.validate(ctx, it); err != nil {
			return true, err
		}
		if p.Best = m.best == nil || p.ValidationError < m.bestError; p.Best {
			model, err := it.Model()
			if err != nil {
				return true, m.explain(err, it.Iteration)
			}
			m.best, m.bestError, m.bestAt = model, p.ValidationError, it.Iteration
		}
	}
	m.last, m.lastAt = it.Model, it.Iteration
	if m.o.Progress != nil {
		err := m.o.Progress(p)
		if errors.Is(err, ErrStop) {
			return true, nil
		} else if err != nil {
			return true, err
		}
	}
	if err := ctx.Err(); err != nil {
		return true, err
	}
	return m.targets != nil && m.o.Patience > 0 && it.Iteration-m.bestAt >= m.o.Patience, nil
}

// validate returns the error on the validation data.
func (m *Monitor) validate(ctx context.Context, it Iterate) (float64, error) {
	model, err := it.Model()
	if err != nil {
		return 0, m.explain(err, it.Iteration)
	}
	if err := model.Predict(ctx, m.outputs, m.o.Validation); err != nil {
		return 0, err
	}
	v := m.measure(m.outputs, m.targets, m.o.Validation.Outputs())
	if math.IsNaN(v) {
		v = math.Inf(1) // never better than a number
	}
	return v, nil
}

// Finish returns what Fit returns after the last Step, which is a model and err. The
// model is the iterate with the least validation error, the last iterate without
// validation data, or nil without an iterate.
func (m *Monitor) Finish(err error) (Model, error) {
	if m.best != nil || m.last == nil {
		return m.best, err
	}
	model, failed := m.last()
	if failed != nil && err == nil {
		err = m.explain(failed, m.lastAt)
	}
	return model, err
}

// FinishWithin is Finish for an err in the middle of an iteration. If ctx ended before
// the first Step, now returns the model of the work done so far.
func (m *Monitor) FinishWithin(ctx context.Context, err error, now func() (Model, error)) (Model, error) {
	if m.last != nil || ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		return m.Finish(err)
	}
	model, failed := now()
	if failed != nil {
		return nil, err
	}
	return model, err
}

// Best returns the iteration of the model that Finish returns and its validation error,
// or 0 and NaN if there is none.
func (m *Monitor) Best() (iteration int, validationError float64) {
	if m.best == nil {
		return m.lastAt, math.NaN()
	}
	return m.bestAt, m.bestError
}

// explain reports numbers that are not finite as divergence, because the data were finite.
func (m *Monitor) explain(err error, iteration int) error {
	var bad *kernel.NonFiniteError
	if errors.As(err, &bad) {
		return m.diverged(iteration)
	}
	return err
}

func (m *Monitor) diverged(iteration int) error {
	return &DivergenceError{Algorithm: m.algorithm, Iteration: iteration, Remedy: "a smaller step or a larger λ"}
}
