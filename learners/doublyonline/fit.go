package doublyonline

import (
	"context"
	"errors"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/sketch"
)

// Fit implements learners.Estimator. An iteration is a twentieth of the T steps. Its
// Objective is the mean of ‖f_t(x_t) − y_t‖² over them, each before its own step. In
// the first pass these rows are new.
func (p Params) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := learners.Check(train, o); err != nil {
		return nil, err
	}
	train, err := learners.CopyRows(algorithm, train, o)
	if err != nil {
		return nil, err
	}
	f := &fit{p: p, n: train.Len(), passes: max(p.Passes, 1)}
	f.steps = f.passes * f.n
	f.iterations = max(1, min(checkpoints, f.steps))
	if f.monitor, err = learners.NewMonitor(ctx, algorithm, f.iterations, train, o); err != nil {
		return nil, err
	}
	f.g = p.newGrowing(train.Dim(), train.Outputs(), f.steps, stream.Derive(o.Seed, "doublyonline/features", 0), learners.Workers(o.Workers))
	for pass := range f.passes {
		rng := stream.New(stream.Derive(o.Seed, "doublyonline/pass", uint64(pass)))
		err := p.settings().Rows(64).Pass(ctx, train, rng, func(x kernel.Rows, y []float64) error { return f.rows(ctx, x, y) })
		if errors.Is(err, errStopped) {
			return f.monitor.Finish(nil)
		} else if err != nil {
			return f.monitor.FinishWithin(ctx, err, f.now)
		}
	}
	return f.monitor.Finish(nil)
}

// errStopped ends a pass after the monitor stopped the fit.
var errStopped = errors.New("doublyonline: stopped")

// fit is the state of a Fit.
type fit struct {
	p          Params
	n, passes  int
	steps      int // T
	iterations int
	iteration  int // finished
	monitor    *learners.Monitor
	g          *growing
	loss, zero float64 // since the last iteration
	since      int     // the steps of the last iteration
}

// next returns the step that ends the current iteration.
func (f *fit) next() int { return f.steps * (f.iteration + 1) / f.iterations }

// rows makes the steps for some rows, from iteration to iteration.
func (f *fit) rows(ctx context.Context, x kernel.Rows, y []float64) error {
	c := f.g.c
	for at := 0; at < x.Len(); {
		end := min(at+f.next()-f.g.t, x.Len())
		loss, zero, err := f.g.rows(x.Slice(at, end), y[at*c:end*c])
		if err != nil {
			return err
		}
		f.loss, f.zero = f.loss+loss, f.zero+zero
		if at = end; f.g.t < f.next() {
			continue
		}
		if err := f.finish(ctx); err != nil {
			return err
		}
	}
	return nil
}

// finish ends an iteration.
func (f *fit) finish(ctx context.Context) error {
	f.iteration++
	if err := minibatch.CheckLoss(algorithm, f.iteration, f.loss, f.zero); err != nil {
		return err
	}
	objective := f.loss / float64(f.g.t-f.since)
	f.loss, f.zero, f.since = 0, 0, f.g.t
	t := f.g.t
	stop, err := f.monitor.Step(ctx, learners.Iterate{
		Iteration: f.iteration, Passes: float64(t) / float64(f.n), Rows: int64(t),
		Objective: objective, Residual: math.NaN(),
		Model: f.model(),
	})
	if err == nil && stop {
		err = errStopped
	}
	return err
}

// model returns a function that makes the model after the present step.
func (f *fit) model() func() (learners.Model, error) {
	t, weights := f.g.t, f.g.weights()
	return func() (learners.Model, error) {
		return learners.NewLinear(f.spec(t), f.g.d, weights, f.g.c)
	}
}

// now returns the model after the last step, or nil before the first.
func (f *fit) now() (learners.Model, error) {
	if f.g.t == 0 {
		return nil, nil
	}
	return f.model()()
}

// spec describes the features after t steps.
func (f *fit) spec(t int) *sketch.FeatureSpec {
	return &sketch.FeatureSpec{
		Family: f.p.family(), Kernel: f.p.Kernel.Spec(), Dim: f.g.d, Features: t * f.g.perStep, Seed: f.g.seed,
	}
}
