package nystrom

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

const algorithm = "nystrom"

// Solver names the method that solves for the coefficients.
type Solver string

// These are the solvers, see the package documentation.
const (
	Direct   Solver = ""
	Gradient Solver = "gradient"
	SGD      Solver = "sgd"
	CG       Solver = "cg"
)

// Coordinates names the unknowns of the iterative solvers.
type Coordinates string

// These are the coordinates.
const (
	Whitened Coordinates = ""
	Plain    Coordinates = "plain"
)

const (
	defaultIterations = 100 // of Gradient and CG
	defaultPasses     = 10  // of SGD
	defaultTolerance  = 1e-10
)

// Params are the hyper-parameters.
type Params struct {
	Kernel kernel.Kernel
	// Lambda is λ ≥ 0 per sample, K_nMᵀK_nM + λnK_MM. 0 means no regularisation, for
	// least squares or early stopping.
	Lambda float64
	// Centers is M, the number of uniform centres, and the largest number that a
	// Sampler may return. A value above n means n. If 0, it is ⌈10√n⌉ for uniform
	// centres, see [learners.Sampling.For].
	Centers int
	// Sampler chooses the centres, or sketch.Uniform does if it is nil. Its weights are not used.
	Sampler sketch.Sampler
	// SamplerLambda is the λ of the Sampler, or 0 for a default, see [learners.Sampling.For].
	SamplerLambda float64
	Solver        Solver
	// Coordinates are the coordinates of the iterative solvers.
	Coordinates Coordinates
	// StepSize is γ of Gradient and SGD. If 0, it is 1/(1.1 s) for Gradient, where s is
	// the largest eigenvalue of ZᵀZ/n + λI. For SGD it is b/(β + (b−1)s), where β is
	// the largest ‖z(x)‖². Both are estimated from at most 4000 rows.
	StepSize float64
	// BatchSize is b of SGD, or 0 for ⌈√n⌉.
	BatchSize int
	// Iterations is the largest number of iterations, which are passes for SGD. If 0,
	// it is 100, or 10 for SGD.
	Iterations int
	// Tolerance is the relative residual of the system at which CG ends. If 0, it is 1e-10.
	Tolerance float64
	// Precision is the precision of the kernel values in Gradient and CG.
	Precision kernel.Precision
	// Distances says how Gradient and CG compute distances. The default,
	// kernel.AutoDistances, expands them about the centres where that loses little.
	Distances kernel.Distances
}

var _ learners.Estimator = Params{}

// Validate returns a *learners.ParameterError for the first hyper-parameter out of range.
func (p Params) Validate() error {
	solvers := []Solver{Direct, Gradient, SGD, CG}
	return cmp.Or(
		learners.Require(slices.Contains(solvers, p.Solver), algorithm, "solver", p.Solver, `"" (direct), gradient, sgd or cg`),
		learners.CheckKernel(algorithm, p.Kernel),
		learners.Require(p.Coordinates == Whitened || p.Coordinates == Plain, algorithm, "coordinates", p.Coordinates, `"" (whitened) or plain`),
		learners.Require(p.Coordinates != Plain || p.Solver != Direct, algorithm, "coordinates", p.Coordinates, "none; it is for the iterative solvers"),
		learners.NotNegative(algorithm, "lambda", p.Lambda),
		learners.NotNegative(algorithm, "sampler lambda", p.SamplerLambda),
		learners.NotNegative(algorithm, "step size", p.StepSize),
		learners.NotNegative(algorithm, "tolerance", p.Tolerance),
		learners.AtLeast(algorithm, "centers", p.Centers, 0),
		learners.AtLeast(algorithm, "batch size", p.BatchSize, 0),
		learners.AtLeast(algorithm, "iterations", p.Iterations, 0),
		learners.CheckDistances(algorithm, p.Distances),
	)
}

func (p Params) sampling() learners.Sampling {
	return learners.Sampling{Sampler: p.Sampler, Lambda: p.SamplerLambda, Most: p.Centers}
}

// withDefaults replaces zeros by their defaults for n rows with some copies.
func (p Params) withDefaults(n, copies int) Params {
	bound := p.Kernel.Bound()
	if !(bound > 0 && bound <= math.MaxFloat64) {
		bound = 1
	}
	s := p.sampling().For(p.Lambda, bound, int(math.Ceil(10*math.Sqrt(float64(copies)))), n)
	p.Sampler, p.Centers, p.SamplerLambda = s.Sampler, s.Most, s.Lambda
	p.BatchSize = cmp.Or(p.BatchSize, int(math.Ceil(math.Sqrt(float64(n)))))
	p.BatchSize = min(p.BatchSize, n)
	switch {
	case p.Solver == Direct:
		p.Iterations = 1
	case p.Iterations > 0:
	case p.Solver == SGD:
		p.Iterations = defaultPasses
	default:
		p.Iterations = defaultIterations
	}
	p.Tolerance = cmp.Or(p.Tolerance, defaultTolerance)
	return p
}

// Fit chooses the centres and solves for all outputs at once. The objective is
// (1/n)‖f(X) − y‖² + λ‖f‖², summed over outputs. For SGD it is the mean squared error
// on its mini-batches, each before its step. The residual is the largest relative
// residual of the system over the outputs. Its errors are those of the sampler and of
// kernel.Operator, and *learners.DivergenceError for a step that is too large.
func (p Params) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := learners.Check(train, o); err != nil {
		return nil, err
	}
	rows, err := learners.CountRows(algorithm, train, o)
	if err != nil {
		return nil, err
	}
	train = rows.Source
	p = p.withDefaults(train.Len(), rows.Copies.Len())
	m, err := learners.NewMonitor(ctx, algorithm, p.Iterations, train, o)
	if err != nil {
		return nil, err
	}
	s := p.sampling()
	s.Weights = rows.Weights
	centers, err := learners.ChooseCenters(ctx, p.Kernel, train, s, o.Seed)
	if err != nil {
		return nil, err
	}
	b, err := newBasis(p.Kernel, centers.Points, p.Coordinates, learners.Workers(o.Workers))
	if err != nil {
		return nil, err
	}
	f := &run{Params: p, ctx: ctx, train: train, o: o, basis: b, n: train.Len(), c: train.Outputs(), rows: rows.Weights}
	f.notes = append(centers.Notes, b.notes()...)
	switch p.Solver {
	case Gradient:
		err = f.gradient(m)
	case SGD:
		err = f.sgd(m)
	case CG:
		err = f.cg(m)
	default:
		err = f.direct(m)
	}
	return m.Finish(err)
}

// run is one call of Fit.
type run struct {
	Params
	ctx   context.Context
	train data.Source
	o     learners.Options
	basis *basis
	n, c  int
	rows  []float64 // weights with mean 1, nil if all are 1
	notes []string
}

// model returns a function that makes the model of the coordinates w, which are copied
// when it is called.
func (f *run) model(w *[]float64) func() (learners.Model, error) {
	return func() (learners.Model, error) {
		return learners.NewExpansion(f.Kernel, f.basis.points, f.basis.coefficients(*w, f.c), f.c)
	}
}

// takeNotes returns the notes and removes them.
func (f *run) takeNotes() []string {
	notes := f.notes
	f.notes = nil
	return notes
}

func (b *basis) notes() []string {
	if b.given == b.points.Len() {
		return nil
	}
	return []string{fmt.Sprintf("of %d centres, %d are linearly dependent on the others and are left out", b.given, b.given-b.points.Len())}
}
