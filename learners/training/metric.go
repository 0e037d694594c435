package training

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/krr"
)

const (
	metricName = "metric"
	diagonal   = "diagonal"
	fullMetric = "full"
)

// Metric is a symmetric map L, d×d row-major. Kernels of rows xL have the metric LL of rows x.
type Metric struct {
	L []float64
	// Gain is the share by which it lowers the error of the first metric on held-out rows, with the
	// ridge Lambda.
	Gain, Lambda float64
	// Rows is the number of rows that it was learned from.
	Rows int
}

// These limit LearnMetric. A fifth of the rows judges.
const metricRows, metricInputs, metricGradients, metricSteps = 2000, 500, 400, 5

// radial are the kernels of a full metric, functions of the distance alone.
var radial = familyNames(func(f kernel.Family) bool {
	return f.Points && f.Spectrum != nil && f.Spectrum.Stretch != nil && f.Params == nil
})

// LearnMetric alternates kernel ridge regression with the average gradient outer product of its
// function as the metric of the next (recursive feature machines, Radhakrishnan, Beaglehole,
// Pandit and Belkin 2024). λ and the number of iterations have the least error of rows held out.
// The first metric is that of the length scales that p has learned, if any. The map keeps the median
// distance of the rows. It takes some 15 fits to up to 1600 rows.
func LearnMetric(ctx context.Context, kernelName string, src data.Source, weights []float64, p Problem, seed uint64, workers int) (*Metric, error) {
	switch {
	case !slices.Contains(radial, kernelName):
		return nil, &LearnError{fmt.Sprintf("the kernel is %s, and a full metric needs a radial one", kernelName), fmt.Sprintf("use one of %v", radial)}
	case p.Dim > metricInputs:
		return nil, &LearnError{fmt.Sprintf("there are %d inputs, more than %d", p.Dim, metricInputs), "use --metric diagonal"}
	case src.Outputs() == 0:
		return nil, &LearnError{"there is no target", "name a column as target"}
	}
	l := learning{name: kernelName, seed: seed, workers: workers}
	copies := data.NewCopies(weights, src.Len())
	rows, held, distinct, err := l.pairs(ctx, src, copies, min(copies.Len(), metricRows))
	if err != nil {
		return nil, err
	}
	n, d := rows.Len(), p.Dim
	if held < 2 {
		return nil, &LearnError{fmt.Sprintf("there are %d rows, of which %d judge", distinct, held), "use --metric diagonal"}
	}
	out := &Metric{Rows: distinct}
	start := make([]float64, d*d)
	for c := range d {
		if start[c*d+c] = 1; p.Learned != nil {
			start[c*d+c] = 1 / p.Learned.Lengths[c]
		}
	}
	first, least, lambda := 0.0, math.Inf(1), 1e-2
	for step, at, worse := 0, start, 0; step <= metricSteps && worse < 2; step++ {
		mapped := data.Map(rows, at).(*data.Memory)
		scale, err := MedianDistance(ctx, mapped, seed)
		if err != nil {
			return nil, err
		}
		k, err := newKernel(kernelName, []float64{scale}, 0, 0)
		if err != nil {
			return nil, err
		}
		model, e, best, err := l.bestRidge(ctx, k, mapped, held, lambda)
		if err != nil {
			return nil, err
		}
		lambda = min(100*best, 1e-2)
		if worse++; e < 0.99*least {
			least, worse = e, 0
			out.L, out.Lambda = slices.Clone(at), best
			floats.Scale(p.MedianDistance/scale, out.L)
		}
		if step == 0 {
			first = least
		}
		some := mapped.Rows().Slice(held, min(held+metricGradients, n)).(*kernel.Points[float64])
		if at, err = nextMap(at, GradientProduct(model, some, scale)); err != nil {
			return nil, err
		}
	}
	out.Gain = 1 - least/first
	return out, nil
}

// pairs returns different copies of rows in random order with all of their targets. A fifth or less, the
// first held ones, are to judge, and no copy of these is among the others. distinct is the number of
// different rows.
func (l *learning) pairs(ctx context.Context, src data.Source, copies *data.Copies, n int) (rows *data.Memory, held, distinct int, err error) {
	m, at, err := l.draw(ctx, src, copies, n)
	if err != nil {
		return nil, 0, 0, err
	}
	count, judges := make([]int, m.Len()), make([]bool, m.Len())
	for _, i := range at {
		count[i]++
	}
	for _, i := range at {
		if !judges[i] && held+count[i] <= n/5 {
			judges[i] = true
			held += count[i]
		}
	}
	at = slices.Concat(
		slices.DeleteFunc(slices.Clone(at), func(i int) bool { return !judges[i] }),
		slices.DeleteFunc(slices.Clone(at), func(i int) bool { return judges[i] }),
	)
	c := m.Outputs()
	y := make([]float64, 0, n*c)
	for _, i := range at {
		y = append(y, m.Targets()[i*c:][:c]...)
	}
	rows, err = data.NewMemory(dense(m.Rows().Select(at)), y, c)
	return rows, held, m.Len(), err
}

// bestRidge fits to the rows after the first held ones with λ falling from a value, until the error
// of those rises. It returns the best function, its error, the root of the mean square, and its λ.
func (l *learning) bestRidge(ctx context.Context, k kernel.Kernel, rows *data.Memory, held int, from float64) (best *learners.Expansion, least, ridge float64, err error) {
	n, c := rows.Len(), rows.Outputs()
	train, err := data.NewMemory(rows.Rows().Slice(held, n), rows.Targets()[held*c:], c)
	if err != nil {
		return nil, 0, 0, err
	}
	least = math.Inf(1)
	f := make([]float64, held*c)
	for lambda := from; lambda > 1e-13; lambda /= 10 {
		m, err := krr.Params{Kernel: k, Lambda: lambda}.Fit(ctx, train, learners.Options{Workers: l.workers})
		if err == nil {
			err = m.Predict(ctx, f, kernel.FromRows(rows.Rows().Slice(0, held)))
		}
		diverged, number := (*learners.DivergenceError)(nil), (*kernel.NonFiniteError)(nil)
		if errors.As(err, &diverged) || errors.As(err, &number) {
			break
		} else if err != nil {
			return nil, 0, 0, err
		}
		e := math.Sqrt(learners.MSE(f, rows.Targets()[:held*c], c))
		if !(e < least) { // not finite, or no better
			break
		}
		best, least, ridge = m.(*learners.Expansion), e, lambda
	}
	if best == nil {
		return nil, 0, 0, &LearnError{"no function is finite", "use --metric diagonal"}
	}
	return best, least, ridge, nil
}

// GradientProduct returns the average gradient outer product (1/n)Σ_iu ∇f_u(x_i)∇f_u(x_i)ᵀ, d×d, of
// an expansion in a radial kernel with one length scale. A radial kernel has
//
//	∇_x k(x, c) = −(x − c)/‖x − c‖² · ∂k(x, c)/∂log ℓ.
func GradientProduct(e *learners.Expansion, x *kernel.Points[float64], scale float64) []float64 {
	n, d, m, c := x.Len(), x.Dim(), e.Centers().Len(), e.Outputs()
	k, centers := e.Kernel().(kernel.Tunable), dense(e.Centers())
	gradients, delta, slope := make([]float64, n*c*d), make([]float64, d), make([]float64, 1)
	for i := range n {
		for j := range m {
			square := 0.0
			for t, v := range x.Row(i) {
				delta[t] = v - centers.Row(j)[t]
				square += delta[t] * delta[t]
			}
			if square <= 1e-16*scale*scale { // no slope, or a kink
				continue
			}
			slope[0] = 0
			k.AddLogGrad(slope, -1/square, x, i, centers, j)
			for u := range c {
				w := slope[0] * e.Coefficients()[j*c+u]
				g := gradients[(i*c+u)*d:][:d]
				for t, v := range delta {
					g[t] += w * v
				}
			}
		}
	}
	product := make([]float64, d*d)
	blocked.Gemm(1, true, blocked.New(n*c, d, gradients), false, blocked.New(n*c, d, gradients), 1/float64(n), 0, blocked.New(d, d, product))
	return product
}

// nextMap returns the square root of LGL for the gradients' G in the space of rows xL, with the
// trace of its square at 1.
func nextMap(l, g []float64) ([]float64, error) {
	d := int(math.Sqrt(float64(len(l))))
	lg, lgl := make([]float64, d*d), make([]float64, d*d)
	blocked.Gemm(1, false, blocked.New(d, d, l), false, blocked.New(d, d, g), 1, 0, blocked.New(d, d, lg))
	blocked.Gemm(1, false, blocked.New(d, d, lg), false, blocked.New(d, d, l), 1, 0, blocked.New(d, d, lgl))
	var eigen mat.EigenSym
	if !eigen.Factorize(mat.NewSymDense(d, lgl), true) {
		return nil, &LearnError{"the eigenvalues of the metric did not converge", "use --metric diagonal"}
	}
	values, vectors, trace := eigen.Values(nil), new(mat.Dense), 0.0
	eigen.VectorsTo(vectors)
	for _, v := range values {
		trace += max(v, 0)
	}
	if !(trace > 0) {
		return nil, &LearnError{"the function does not vary", "use --metric diagonal"}
	}
	half, out := vectors.RawMatrix().Data, make([]float64, d*d)
	for i := range half {
		half[i] *= math.Sqrt(math.Sqrt(max(values[i%d], 0) / trace))
	}
	blocked.Gemm(1, false, blocked.New(d, d, half), true, blocked.New(d, d, half), 1, 0, blocked.New(d, d, out))
	return out, nil
}

// mapped is an estimator of expansions on rows xL.
type mapped struct {
	learners.Estimator
	l []float64
}

// Fit fits to mapped rows. Its models take the rows themselves.
func (e mapped) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	if o.Validation != nil {
		o.Validation = data.Map(o.Validation, e.l)
	}
	if progress := o.Progress; progress != nil {
		o.Progress = func(p learners.Progress) error {
			if snapshot := p.Snapshot; snapshot != nil {
				p.Snapshot = func() (learners.Model, error) { return e.whole(snapshot()) }
			}
			return progress(p)
		}
	}
	return e.whole(e.Estimator.Fit(ctx, data.Map(train, e.l), o))
}

func (e mapped) whole(m learners.Model, err error) (learners.Model, error) {
	if f, ok := m.(*learners.Expansion); ok && f != nil {
		return f.WithMap(e.l), err
	}
	return m, err
}

// LeaveOneOut has the outputs of the estimator on mapped rows.
func (e mapped) LeaveOneOut(ctx context.Context, train data.Source, o learners.Options) ([]float64, error) {
	return e.Estimator.(interface {
		LeaveOneOut(context.Context, data.Source, learners.Options) ([]float64, error)
	}).LeaveOneOut(ctx, data.Map(train, e.l), o)
}
