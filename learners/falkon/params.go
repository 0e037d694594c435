package falkon

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/sketch"
)

// Solver says how Wβ = b is solved.
type Solver string

const (
	// ConjugateGradient is the complete algorithm (Algorithm 1).
	ConjugateGradient Solver = ""
	// Gradient is the basic algorithm (4.9) with the step 1/λ_max(W), which is
	// estimated first in some passes. The printed step γ/n is too short by a factor of
	// n.
	Gradient Solver = "gradient"
)

// Params is FALKON with its hyper-parameters. All fields except Kernel have defaults. Kernel,
// centres and λ determine the solution.
type Params struct {
	Kernel kernel.Kernel
	// Lambda is λ > 0 per sample, K_nMᵀK_nM + λnK_MM, in units of κ². If 0, it is κ²/n,
	// which is theory.Lambda for r = ½, α = 0.
	Lambda float64
	// Centers is M, the number of uniform centres, and the largest number that a
	// Sampler may return. A value above n means n. If 0, it is theory.PracticalCenters,
	// about 10√n, for uniform centres, see [learners.Sampling.For].
	Centers int
	// Sampler chooses the centres, or sketch.Uniform does if it is nil. With
	// sketch.BLESS, this is FALKON-BLESS. Its path then ends when it has Centers.
	Sampler sketch.Sampler
	// SamplerLambda is the λ of the Sampler, or 0 for a default, see
	// [learners.Sampling.For]. A dictionary for 100λ preconditions a problem with λ well.
	SamplerLambda float64
	Solver        Solver
	Factorization Factorization
	// Iterations is t, the largest number of iterations. If 0, it is 100.
	Iterations int
	// Tolerance is the relative residual ‖Wβ − b‖/‖b‖ that ends the iteration of an
	// output. If 0, it is 1e-7.
	Tolerance float64
	// Epsilon is the part of K_MM, relative to its largest element, that counts as 0,
	// see Factorization. If 0, it is 1e-13, and 1e-6 with products in single precision.
	// It is raised by factors of 10 if the iteration diverges.
	Epsilon float64
	// Precision is the precision of the products with K_nM in the fit. Single precision
	// has errors in f of about 6e-8/√(ελ).
	Precision kernel.Precision
	// Distances says how those products compute distances. The default,
	// kernel.AutoDistances, expands them about the centres where that loses little.
	// K_MM and the predictions do not depend on it.
	Distances kernel.Distances
}

const (
	algorithm         = "falkon"
	defaultIterations = 100
	defaultTolerance  = 1e-7
	defaultEpsilon    = 1e-13
	defaultEpsilon32  = 1e-6
)

// Validate returns a *learners.ParameterError for the first hyper-parameter out
// of range.
func (p Params) Validate() error {
	return cmp.Or(
		learners.CheckKernel(algorithm, p.Kernel),
		learners.Require(slices.Contains(factorizations, p.Factorization), algorithm, "factorization", p.Factorization, fmt.Sprintf("one of %q", factorizations)),
		learners.Require(p.Solver == ConjugateGradient || p.Solver == Gradient, algorithm, "solver", p.Solver, fmt.Sprintf("%q or %q", ConjugateGradient, Gradient)),
		learners.Require(p.Epsilon < 1, algorithm, "epsilon", p.Epsilon, "below 1, relative to k(x, x)"),
		learners.NotNegative(algorithm, "lambda", p.Lambda),
		learners.NotNegative(algorithm, "sampler lambda", p.SamplerLambda),
		learners.NotNegative(algorithm, "tolerance", p.Tolerance),
		learners.NotNegative(algorithm, "epsilon", p.Epsilon),
		learners.AtLeast(algorithm, "centers", p.Centers, 0),
		learners.AtLeast(algorithm, "iterations", p.Iterations, 0),
		learners.CheckDistances(algorithm, p.Distances),
	)
}

// settled returns p with its defaults for n copies of some rows and κ² = sup k(x, x).
func (p Params) settled(n, rows int, kappaSq float64) (Params, error) {
	if p.Lambda == 0 {
		l, err := theory.Lambda(n, theory.Regularity{R: 0.5, Alpha: 0})
		if err != nil {
			return p, err
		}
		p.Lambda = l * kappaSq
	}
	usual, err := defaultCenters(n)
	if err != nil {
		return p, err
	}
	s := p.sampling().For(p.Lambda, kappaSq, usual, rows)
	p.Sampler, p.Centers, p.SamplerLambda = s.Sampler, s.Most, s.Lambda
	p.Iterations = cmp.Or(p.Iterations, defaultIterations)
	p.Tolerance = cmp.Or(p.Tolerance, defaultTolerance)
	if p.Precision == kernel.Float32 {
		p.Epsilon = cmp.Or(p.Epsilon, defaultEpsilon32)
	}
	p.Epsilon = cmp.Or(p.Epsilon, defaultEpsilon)
	return p, nil
}

func (p Params) sampling() learners.Sampling {
	return learners.Sampling{Sampler: p.Sampler, Lambda: p.SamplerLambda, Most: p.Centers}
}

// defaultCenters is Theorem 7 with practical constants, for λ = n^−½ and unknown N_∞.
func defaultCenters(n int) (int, error) {
	lambda, err := theory.Lambda(n, theory.WorstCase())
	if err != nil {
		return 0, err
	}
	return theory.PracticalCenters(n, 1/lambda, lambda, 1)
}
