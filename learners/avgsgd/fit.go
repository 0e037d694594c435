package avgsgd

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/sketch"
)

// machine is one of the three forms during a fit.
type machine interface {
	// pass makes n steps and returns two sums, of the losses before each step and of ‖y‖².
	pass(ctx context.Context, rng *rand.Rand) (loss, zero float64, err error)
	// keep copies θ̄, or θ if last is set. model returns the copy until the next keep.
	keep(last bool)
	model() (learners.Model, error)
	// steps returns t.
	steps() int
}

// Fit implements learners.Estimator. An iteration is a pass of n steps. Its Objective is the mean
// of ‖f(x_i) − y_i‖², each before its own step, for the iterates and not for their average.
func (p Params) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	passes := cmp.Or(p.Passes, DefaultPasses)
	monitor, err := learners.NewMonitor(ctx, algorithm, passes, train, o)
	if err != nil {
		return nil, err
	}
	if train, err = learners.CopyRows(algorithm, train, o); err != nil {
		return nil, err
	}
	m, err := p.newMachine(ctx, train, o)
	if err != nil {
		return nil, err
	}
	n := train.Len()
	for pass := 1; pass <= passes; pass++ {
		loss, zero, err := m.pass(ctx, stream.New(stream.Derive(o.Seed, "avgsgd/pass", uint64(pass))))
		if err == nil {
			err = minibatch.CheckLoss(algorithm, pass, loss, zero)
		}
		if err != nil {
			return monitor.FinishWithin(ctx, err, func() (learners.Model, error) {
				if m.steps() == 0 {
					return nil, nil
				}
				m.keep(p.Averaging == None)
				return m.model()
			})
		}
		m.keep(p.Averaging == None)
		stop, err := monitor.Step(ctx, learners.Iterate{
			Iteration: pass, Passes: float64(pass), Rows: int64(pass) * int64(n),
			Objective: loss / float64(n), Residual: math.NaN(), Model: m.model,
		})
		if stop || err != nil {
			return monitor.Finish(err)
		}
	}
	return monitor.Finish(nil)
}

func (p Params) newMachine(ctx context.Context, train data.Source, o learners.Options) (machine, error) {
	if p.Kernel != nil && p.Features == 0 {
		return p.newKernelised(ctx, train)
	}
	m := &explicit{p: p, src: train, d: train.Dim(), workers: learners.Workers(o.Workers)}
	width := m.d
	if p.Kernel != nil {
		phi, err := p.newFeatures(ctx, m.d, p.Features, stream.Derive(o.Seed, "avgsgd/features", 0))
		if err != nil {
			return nil, err
		}
		m.phi, width = phi, p.Features
	}
	step := p.StepSize
	if step == 0 {
		bound, err := m.largestNorm(ctx)
		if err != nil {
			return nil, err
		}
		step = defaultStep(bound)
	}
	m.weights = newPrimal(width, train.Outputs(), step)
	m.kept = make([]float64, width*train.Outputs())
	return m, nil
}

// defaultStep returns 1/(4R²). If all features are 0, any step will do.
func defaultStep(bound float64) float64 {
	if bound > 0 {
		return 0.25 / bound
	}
	return 0
}

// explicit is the form with weights, of x itself or of random features.
type explicit struct {
	p       Params
	src     data.Source
	d       int
	phi     sketch.FeatureMap // nil for x itself
	workers int
	weights *primal
	kept    []float64
	buf     []float64
}

func (m *explicit) pass(ctx context.Context, rng *rand.Rand) (loss, zero float64, err error) {
	block := learners.BlockRows(m.weights.m)
	err = m.p.settings().Rows(block).Pass(ctx, m.src, rng, func(x kernel.Rows, y []float64) error {
		x, err := m.features(x)
		if err != nil {
			return err
		}
		l, err := m.weights.rows(x, y)
		loss += l
		for _, v := range y {
			zero += v * v
		}
		return err
	})
	return loss, zero, err
}

// features returns φ of the rows, computed in parallel, or the rows themselves.
func (m *explicit) features(x kernel.Rows) (kernel.Rows, error) {
	if m.phi == nil {
		return x, nil
	}
	n, width := x.Len(), m.phi.Features()
	if len(m.buf) < n*width {
		m.buf = make([]float64, n*width)
	}
	if err := learners.ApplyFeatures(m.phi, m.buf[:n*width], x, 8, m.workers); err != nil {
		return nil, err
	}
	return kernel.NewPoints(n, width, m.buf[:n*width]), nil
}

// largestNorm returns max ‖Φ(x_i)‖² over the data. Pairs of cosine and sine have a norm
// that the kernel gives. Other features need a pass.
func (m *explicit) largestNorm(ctx context.Context) (float64, error) {
	if m.phi != nil {
		if f := m.phi.Spec().Family; f == sketch.Orthogonal || f == sketch.Fourier || f == sketch.Fastfood {
			return m.p.Kernel.Bound(), nil
		}
	}
	linear, err := kernel.NewLinear(1)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	largest := 0.0
	size := learners.BlockRows(max(m.d, m.p.Features))
	err = learners.EachBlock(ctx, m.src, size, m.workers, func(row int, x kernel.Rows) error {
		if m.phi != nil {
			phi := make([]float64, x.Len()*m.phi.Features())
			if err := m.phi.Apply(phi, x); err != nil {
				return learners.Shift(err, row)
			}
			x = kernel.NewPoints(x.Len(), m.phi.Features(), phi)
		}
		diag, err := kernel.Diagonal(linear, x)
		if err != nil {
			return learners.Shift(err, row)
		}
		mu.Lock()
		defer mu.Unlock()
		largest = max(largest, slices.Max(diag))
		return nil
	})
	return largest, err
}

func (m *explicit) keep(last bool) {
	average(m.kept, m.weights.w, m.weights.u, m.weights.t, last)
}

func (m *explicit) steps() int { return m.weights.t }

func (m *explicit) model() (learners.Model, error) {
	w := slices.Clone(m.kept)
	if m.phi == nil {
		return learners.NewLinear(nil, m.d, w, m.weights.c)
	}
	return learners.LinearIn(m.phi, w, m.weights.c, m.d)
}

// kernelised is the form with coefficients.
type kernelised struct {
	p    Params
	x    kernel.Rows
	y    []float64
	gram []float64 // n×n, nil if n is too large
	dual *dual
	kept []float64
}

func (p Params) newKernelised(ctx context.Context, train data.Source) (*kernelised, error) {
	all, err := learners.InMemory(ctx, train)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n, c := all.Len(), all.Outputs()
	m := &kernelised{p: p, x: all.Rows(), y: all.Targets(), kept: make([]float64, n*c)}
	if err := kernel.CheckFinite("x", m.x); err != nil {
		return nil, err
	}
	step := p.StepSize
	if step == 0 {
		diag, err := kernel.Diagonal(p.Kernel, m.x)
		if err != nil {
			return nil, err
		}
		step = defaultStep(slices.Max(diag))
	}
	if n <= gramRows {
		if m.gram, err = kernel.Gramian(p.Kernel, m.x); err != nil {
			return nil, err
		}
	}
	m.dual = newDual(n, c, step)
	return m, nil
}

// columnElements limits the number of values that are computed at once without K.
const columnElements = 1 << 21

func (m *kernelised) pass(ctx context.Context, rng *rand.Rand) (loss, zero float64, err error) {
	n, c := m.dual.n, m.dual.c
	block := min(max(columnElements/n, 1), 64)
	err = m.p.settings().Rows(block).Deal(ctx, n, rng, func(idx []int) error {
		k, row := m.gram, func(j int) int { return idx[j] }
		if k == nil {
			row = func(j int) int { return j }
			if k, err = kernel.Matrix(m.p.Kernel, m.x.Select(idx), m.x); err != nil {
				return err
			}
		}
		for j, i := range idx {
			y := m.y[i*c:][:c]
			loss += m.dual.visit(i, k[row(j)*n:][:n], y)
			for _, v := range y {
				zero += v * v
			}
		}
		return nil
	})
	return loss, zero, err
}

func (m *kernelised) keep(last bool) { average(m.kept, m.dual.a, m.dual.u, m.dual.t, last) }

func (m *kernelised) steps() int { return m.dual.t }

func (m *kernelised) model() (learners.Model, error) {
	return learners.NewExpansion(m.p.Kernel, m.x, slices.Clone(m.kept), m.dual.c)
}
