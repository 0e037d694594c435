package landweber

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

const algorithm = "landweber"

// DefaultIterations is the default of Iterations.
const DefaultIterations = 200

const (
	powerSteps = 20
	// safety corrects the estimate of ‖K‖, which is a lower bound.
	safety = 1.1
)

// Params are the hyper-parameters.
type Params struct {
	Kernel kernel.Kernel
	// StepSize is γ, below 2n/‖K‖. If 0, it is n/(1.1‖K‖) with ‖K‖ by power iteration.
	StepSize float64
	// Iterations is the largest t, or 0 for DefaultIterations.
	Iterations int
	// Precision is the precision of the kernel values.
	Precision kernel.Precision
	// Distances says how the kernel computes distances. The default, kernel.AutoDistances,
	// expands them about the mean of the rows where that loses little.
	Distances kernel.Distances
}

var _ learners.Estimator = Params{}

// Validate returns a *learners.ParameterError for the first hyper-parameter out of range.
func (p Params) Validate() error {
	return cmp.Or(
		learners.CheckKernel(algorithm, p.Kernel),
		learners.NotNegative(algorithm, "step size", p.StepSize),
		learners.CheckDistances(algorithm, p.Distances),
		learners.AtLeast(algorithm, "iterations", p.Iterations, 0),
	)
}

// Fit reads train into memory and iterates. The objective is (1/n)‖S^½(Kc − y)‖², the mean
// squared error on the training rows, summed over outputs. The residual is
// ‖S^½(Kc − y)‖/‖S^½y‖. A step that is too large gives a *learners.DivergenceError.
func (p Params) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	p.Iterations = cmp.Or(p.Iterations, DefaultIterations)
	m, err := learners.NewMonitor(ctx, algorithm, p.Iterations, train, o)
	if err != nil {
		return nil, err
	}
	d, err := p.start(ctx, train, o)
	if err != nil {
		return nil, err
	}
	defer d.k.Close()
	for t := 1; t <= p.Iterations; t++ {
		if err := d.step(ctx, t); err != nil {
			return m.Finish(err)
		}
		stop, err := m.Step(ctx, learners.Iterate{
			Iteration: t, Passes: float64(t), Rows: int64(t) * int64(d.n),
			Objective: d.objective(), Residual: d.relative(), Model: d.model(p.Kernel),
		})
		if stop || err != nil {
			return m.Finish(err)
		}
	}
	return m.Finish(nil)
}

// descent is the state of the iteration.
type descent struct {
	learners.Rows
	k        *kernel.Operator // K(X, X)
	x        kernel.Rows
	y        []float64
	n, c     int
	step0    float64   // γ/n
	coef     []float64 // c_t
	next     []float64 // c_{t+1} under construction
	residual []float64 // K c_t − y
	size     float64   // ‖y‖²

	residualSize float64 // ‖residual‖²
}

func (p Params) start(ctx context.Context, train data.Source, o learners.Options) (*descent, error) {
	rows, err := learners.CountRows(algorithm, train, o)
	if err != nil {
		return nil, err
	}
	all, err := learners.InMemory(ctx, rows.Source)
	if err != nil {
		return nil, err
	}
	k, err := kernel.NewOperator(p.Kernel, all, all.Rows(), kernel.Options{Workers: o.Workers, Precision: p.Precision, Distances: p.Distances})
	if err != nil {
		return nil, err
	}
	n, c := all.Len(), all.Outputs()
	d := &descent{
		k: k, Rows: rows, x: all.Rows(), y: all.Targets(), n: n, c: c, step0: p.StepSize / float64(n),
		coef: make([]float64, n*c), next: make([]float64, n*c), residual: make([]float64, n*c),
	}
	for i, v := range d.y {
		d.residual[i] = -v
		d.size += d.Weight(i/c) * v * v
	}
	if p.StepSize == 0 {
		norm, err := learners.LargestEigenvalue(ctx, n, powerSteps, o.Seed, d.product)
		if err != nil {
			k.Close()
			return nil, err
		}
		d.step0 = 1 / (safety * norm)
		if norm == 0 { // K = 0, and nothing can be learnt with any step
			d.step0 = 1
		}
	}
	return d, nil
}

// product sets dst = S^½KS^½v.
func (d *descent) product(ctx context.Context, dst, v []float64) error {
	if d.Weights == nil {
		return d.k.Apply(ctx, dst, v)
	}
	u := make([]float64, d.n)
	for i, s := range d.Weights {
		u[i] = math.Sqrt(s) * v[i]
	}
	err := d.k.Apply(ctx, dst, u)
	for i, s := range d.Weights {
		dst[i] *= math.Sqrt(s)
	}
	return err
}

// step makes iterate t. If it fails, the previous iterate is unchanged.
func (d *descent) step(ctx context.Context, t int) error {
	for i, r := range d.residual {
		d.next[i] = d.coef[i] - d.step0*d.Weight(i/d.c)*r
	}
	residual, size := make([]float64, len(d.y)), 0.0
	if err := d.k.Apply(ctx, residual, d.next); err != nil {
		return err
	}
	for i, v := range d.y {
		residual[i] -= v
		size += d.Weight(i/d.c) * residual[i] * residual[i]
	}
	if !(size <= 4*d.size) { // it never grows, unless γ is too large
		return &learners.DivergenceError{Algorithm: algorithm, Iteration: t, Remedy: "a smaller step size"}
	}
	d.residual, d.residualSize = residual, size
	d.coef, d.next = d.next, d.coef
	return nil
}

// objective is the mean squared error on the training rows.
func (d *descent) objective() float64 { return d.residualSize / float64(d.n) }

func (d *descent) relative() float64 {
	if d.size == 0 {
		return 0
	}
	return math.Sqrt(d.residualSize / d.size)
}

// model returns a function that makes the model of the present iterate. The function
// must be called before the next step or not at all.
func (d *descent) model(k kernel.Kernel) func() (learners.Model, error) {
	return func() (learners.Model, error) {
		return learners.NewExpansion(k, d.x, slices.Clone(d.coef), d.c)
	}
}
