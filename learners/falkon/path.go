package falkon

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

var _ learners.Estimator = PathParams{}

// PathParams solve for one λ after the other, each from the previous solution. K_MM is
// factored and K_nMᵀy read once for all λ with the same centres, and starting costs no
// pass. A Sampler that has a path (sketch.BLESS, sketch.BLESSR) runs once, and each λ
// uses the centres of its level, fewer for a larger λ.
type PathParams struct {
	// Params are common to all solutions. Its Lambda is not used. The λ of the sampler's
	// last level belongs to the last λ, and is in the same proportion for the others.
	Params
	// Lambdas are λ_1 > λ_2 > … > 0.
	Lambdas []float64
}

// Solution is the function for one λ of a path.
type Solution struct {
	Lambda  float64
	Centers int // M
	// Model is the iterate with the least ValidationError, or the last one and
	// NaN if there are no validation data.
	Model           learners.Model
	ValidationError float64
	// Iterations counts the iterations, and Passes the passes over the data so far.
	Iterations, Passes int
}

// Validate returns a *learners.ParameterError for the first hyper-parameter out
// of range.
func (p PathParams) Validate() error {
	if len(p.Lambdas) == 0 {
		return learners.Invalid(algorithm, "lambdas", p.Lambdas, "at least one")
	}
	for i, l := range p.Lambdas {
		if err := learners.Positive(algorithm, fmt.Sprintf("lambda %d", i+1), l); err != nil {
			return err
		}
		if i > 0 && !(l < p.Lambdas[i-1]) {
			return learners.Invalid(algorithm, fmt.Sprintf("lambda %d", i+1), l, "below the one before")
		}
	}
	return p.Params.Validate()
}

// Fit returns the solution with the least validation error, or the last one without
// validation data, see [PathParams.Path].
func (p PathParams) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	solutions, err := p.Path(ctx, train, o)
	var best learners.Model
	least := math.NaN()
	for _, s := range solutions {
		if s.Model != nil && (best == nil || o.Validation == nil || s.ValidationError < least) {
			best, least = s.Model, s.ValidationError
		}
	}
	return best, err
}

// Path returns the solutions for the λ_i in turn. It returns fewer if Options.Progress
// or an error ends the fit. Iterations are counted over all λ. Options.Patience ends
// the iterations at one λ. Its errors are those of [Params.Fit].
func (p PathParams) Path(ctx context.Context, train data.Source, o learners.Options) ([]Solution, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := learners.Check(train, o); err != nil {
		return nil, err
	}
	last := p.Lambdas[len(p.Lambdas)-1]
	p.Lambda = last
	f, err := newFit(ctx, p.Params, train, o)
	if err != nil {
		return nil, err
	}
	defer f.close()
	finest, err := f.choose(ctx, o.Seed)
	if err != nil {
		return nil, err
	}
	w := &walk{fit: f, finest: finest, at: -1, ratio: finest.Dictionary.Lambda / last, total: len(p.Lambdas) * f.Iterations, least: math.Inf(1), o: o}
	if p.Start != nil {
		w.previous = p.Start
	}
	var solutions []Solution
	for _, lambda := range p.Lambdas {
		s, err := w.step(ctx, lambda)
		if s.Model != nil {
			solutions = append(solutions, s)
		}
		if err != nil || w.stopped {
			return solutions, err
		}
	}
	return solutions, nil
}

// walk is the state of a path.
type walk struct {
	*fit
	finest   *learners.Centers
	ratio    float64 // λ of the centres over λ
	o        learners.Options
	previous learners.Model
	at       int // level of the centres of the last λ, −1 at first

	total, made int // iterations, and those of earlier λ
	least       float64
	stopped     bool
}

// step solves for the next λ.
func (w *walk) step(ctx context.Context, lambda float64) (Solution, error) {
	o := w.o
	if w.o.Progress != nil || w.o.Validation != nil {
		o.Progress = w.report
	}
	monitor, err := learners.NewMonitor(ctx, algorithm, w.Iterations, w.train, o)
	if err != nil {
		return Solution{}, err
	}
	if err := w.move(ctx, lambda); err != nil {
		return Solution{}, err
	}
	t, err := w.run(ctx, monitor)
	model, err := monitor.Finish(err)
	_, validation := monitor.Best()
	w.made += t
	w.previous = model
	return Solution{
		Lambda: lambda, Centers: w.centers.Len(), Model: model, ValidationError: validation,
		Iterations: t, Passes: w.passes + w.sys.passes,
	}, err
}

// report counts iterations over all λ and tracks the best of them.
func (w *walk) report(p learners.Progress) error {
	p.Iteration += w.made
	p.Iterations = w.total
	if p.Best = p.ValidationError < w.least; p.Best {
		w.least = p.ValidationError
	}
	if w.o.Progress == nil {
		return nil
	}
	err := w.o.Progress(p)
	w.stopped = errors.Is(err, learners.ErrStop)
	return err
}

// move makes the system for another λ.
func (w *walk) move(ctx context.Context, lambda float64) error {
	w.Lambda = lambda
	level := w.level(lambda)
	if level == w.at {
		if w.sys.pre.set(w.perRow(), lambda) {
			w.sys.regularise(lambda)
			return nil
		}
		w.epsilon *= 10
	}
	w.at = level
	if err := w.center(ctx, w.centersAt(level)); err != nil {
		return err
	}
	w.from = nil
	if w.previous == nil {
		return nil
	}
	return w.warm(ctx, w.previous)
}

// level returns the first level of the sampler's path that is fine enough for λ, or
// else the last.
func (w *walk) level(lambda float64) int {
	path := w.finest.Dictionary.Path
	for h := range path {
		if path[h].Lambda <= lambda*w.ratio*(1+1e-9) {
			return h
		}
	}
	return max(len(path)-1, 0)
}

// centersAt returns the centres of a level, where finest are those of the last level.
func (w *walk) centersAt(h int) *learners.Centers {
	path := w.finest.Dictionary.Path
	if h >= len(path)-1 {
		return w.finest
	}
	l := &path[h]
	return &learners.Centers{Points: l.Points, Indices: l.Indices, Weights: l.InverseWeights()}
}
