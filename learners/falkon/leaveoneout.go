package falkon

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/krr"
)

// LeaveOneOut returns the outputs f_{−i}(x_i) for the n rows of train, n×c. f_{−i} is the
// solution of the squared loss without row i, with the same ridge λn. For z_i = F⁻¹k_M(x_i)
// and A = Σ s_i z_i z_iᵀ/n + λI, the solution v of Av = Σ s_i y_i z_i/n, and r_i = y_i − f(x_i),
//
//	f_{−i}(x_i) = y_i − r_i/(1 − h_i),   h_i = s_i z_iᵀA⁻¹z_i/n.
//
// If x_i is a centre, it is left out as a centre too, except if another centre is equal. The
// Lagrangian holds its coefficient c_iᵀv, where c_i = F⁻¹e_i, at 0. With g_i = z_iᵀA⁻¹c_i this
// subtracts
//
//	g_i (c_iᵀv − s_i g_i r_i/n(1 − h_i)) / ((1 − h_i) c_iᵀA⁻¹c_i + s_i g_i²/n).
//
// It is exact, in double precision, and o.Validation has no effect. It takes O(nM² + M³) time and
// 16nM bytes. If all rows are centres, and Epsilon has its default in double precision, it is that
// of [krr.Params.LeaveOneOut], in a fifth of the time. Its errors are those of Fit.
func (p Params) LeaveOneOut(ctx context.Context, train data.Source, o learners.Options) ([]float64, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	o.Validation = nil
	if err := learners.Check(train, o); err != nil {
		return nil, err
	}
	f, err := newFit(ctx, p, train, o)
	if err != nil {
		return nil, err
	}
	y, err := learners.Targets(ctx, f.train)
	if err != nil {
		return nil, err
	}
	if f.isRidge() {
		return f.ridge().LeaveOneOut(ctx, train, o)
	}
	if f.centers, err = f.choose(ctx, o.Seed); err != nil {
		return nil, err
	}
	copied, err := f.copied()
	if err != nil {
		return nil, err
	}
	if f.Factorization == FactorCholesky {
		if f.centers, err = f.merged(f.centers); err != nil {
			return nil, err
		}
	}
	for range attempts {
		factor, ok, err := f.factorise()
		if err != nil {
			return nil, err
		}
		if !ok {
			f.epsilon *= 10
			continue
		}
		defer factor.onDevice().leave(nil)
		z, err := f.features(ctx, factor)
		if err != nil {
			return nil, err
		}
		out, err := f.leaveOneOut(factor, z, y, copied)
		if err != nil {
			return nil, err
		}
		p.Iterations, p.Tolerance = max(p.Iterations, exactIterations), exactTolerance
		return f.Restore(ctx, out, func() (learners.Model, error) { return p.Fit(ctx, train, o) })
	}
	return nil, f.unsolvable(0)
}

// exactIterations and exactTolerance end the fit of the outputs for rows of weight 0.
const (
	exactIterations = 200
	exactTolerance  = 1e-12
)

// LeaveOneOut returns a *learners.ParameterError, because only the squared loss has the
// closed form of [Params.LeaveOneOut].
func (p RobustParams) LeaveOneOut(context.Context, data.Source, learners.Options) ([]float64, error) {
	return nil, learners.Invalid(algorithm, "loss", p.Loss, onlySquared)
}

// LeaveOneOut is that of RobustParams.
func (LogisticParams) LeaveOneOut(context.Context, data.Source, learners.Options) ([]float64, error) {
	return nil, learners.Invalid(algorithm, "loss", "logistic", onlySquared)
}

const onlySquared = "the squared loss of Params, which alone has outputs of leaving out rows"

// isRidge reports whether the solution is that of kernel ridge regression on all rows. It has no
// ε, and a smaller ridge would lose its digits in K + λnI.
func (f *fit) isRidge() bool {
	return f.Sampler == nil && f.Centers == f.train.Len() && f.Lambda >= leastRidge*f.kappaSq &&
		f.Precision != kernel.Float32 && f.Epsilon == defaultEpsilon
}

// ridge is kernel ridge regression on these rows.
func (f *fit) ridge() krr.Params {
	return krr.Params{Kernel: f.Kernel, Lambda: f.Lambda, MaxRows: f.train.Len()}
}

// copied returns the rows of the centres that have an equal one.
func (f *fit) copied() (map[int]bool, error) {
	gram, err := kernel.LargeGramian(f.Kernel, f.centers.Points)
	if err != nil {
		return nil, err
	}
	different, at := merge(gram, f.centers.Len())
	count := make([]int, len(different))
	for _, k := range at {
		count[k]++
	}
	copied := map[int]bool{}
	for i, k := range at {
		if count[k] > 1 {
			copied[f.centers.Indices[i]] = true
		}
	}
	return copied, nil
}

// features returns S^½F⁻¹K_Mn/√n, q×n, for the used centres.
func (f *fit) features(ctx context.Context, factor factor) (blocked.Matrix[float64], error) {
	n, used := f.train.Len(), f.centers.Points.Select(factor.used())
	z := blocked.New[float64](factor.rank(), n, nil)
	x, err := kernel.Select(ctx, f.train, upTo(n))
	if err != nil {
		return z, err
	}
	k, err := kernel.Matrix(f.Kernel, used, x)
	if err != nil {
		return z, err
	}
	for i := range n {
		s := f.share(i)
		for j := range used.Len() {
			k[j*n+i] *= s
		}
	}
	factor.coordinates(z.Data, k, n)
	return z, ctx.Err()
}

// leastRidge is the least λ over κ² at which kernel ridge regression takes the place of
// FALKON with all centres.
const leastRidge = 0.9e-12

// leastRest is the least 1 − h_i. Below it, rounding has left no digit of the residual.
const leastRest = 1e-12

// share returns √(s_i/n).
func (f *fit) share(i int) float64 { return math.Sqrt(f.Weight(i) / float64(f.train.Len())) }

// leaveOneOut returns the outputs for the features z of the rows with targets y. copied are
// the rows of centres that have an equal one. It overwrites z.
func (f *fit) leaveOneOut(factor factor, z blocked.Matrix[float64], y []float64, copied map[int]bool) ([]float64, error) {
	q, n, c := z.Rows, z.Cols, f.train.Outputs()
	a := blocked.New[float64](q, q, nil)
	blocked.Syrk(f.workers, false, z, 1, 0, a)
	for i := range q {
		a.Data[i*q+i] += f.Lambda
	}
	if blocked.Cholesky(f.workers, a) < q {
		return nil, f.unsolvable(0)
	}
	blocked.SolveLower(f.workers, false, a, z) // z_i becomes L⁻¹z_i, and h_i = ‖L⁻¹z_i‖²
	scaled := make([]float64, len(y))
	for i := range n {
		s := f.share(i)
		for j := range c {
			scaled[i*c+j] = s * y[i*c+j]
		}
	}
	w, fitted := blocked.New[float64](q, c, nil), blocked.New[float64](n, c, nil)
	blocked.Gemm(f.workers, false, z, false, blocked.New(n, c, scaled), 1, 0, w)
	blocked.Gemm(f.workers, true, z, false, w, 1, 0, fitted) // S^½f/√n
	leverage := make([]float64, n)
	for j := range q {
		for i, v := range z.Data[j*n:][:n] {
			leverage[i] += v * v
		}
	}
	out, rest := fitted.Data, make([]float64, n)
	for i, h := range leverage {
		if rest[i] = 1 - h; !(rest[i] > leastRest) {
			return nil, f.unsolvable(0)
		}
		for j := range c {
			at := i*c + j
			out[at] = scaled[at] - (scaled[at]-out[at])/rest[i]
		}
	}
	f.leaveCentres(factor, a, z, w, scaled, rest, out, copied)
	for i := range n {
		for j := range c {
			out[i*c+j] /= f.share(i)
		}
	}
	return out, nil
}

// leaveCentres corrects the outputs of rows that are centres and not copied. l is the factor
// of A, z are L⁻¹z_i, w is Lᵀv, and outputs and targets are multiplied by √(s_i/n).
func (f *fit) leaveCentres(factor factor, l, z, w blocked.Matrix[float64], scaled, rest, out []float64, copied map[int]bool) {
	q, n, c, used := z.Rows, z.Cols, w.Cols, factor.used()
	e := blocked.New[float64](len(used), len(used), nil)
	for k := range used {
		e.Data[k*len(used)+k] = 1
	}
	u := blocked.New[float64](q, len(used), nil) // L⁻¹c_k in the columns
	factor.coordinates(u.Data, e.Data, len(used))
	blocked.SolveLower(f.workers, false, l, u)
	coefficients := blocked.New[float64](len(used), c, nil)
	blocked.Gemm(f.workers, true, u, false, w, 1, 0, coefficients)
	g, length := make([]float64, len(used)), make([]float64, len(used))
	for j := range q {
		row := z.Data[j*n:][:n]
		for k, v := range u.Data[j*len(used):][:len(used)] {
			g[k] += v * row[f.centers.Indices[used[k]]]
			length[k] += v * v
		}
	}
	for k, center := range used {
		i := f.centers.Indices[center]
		if copied[i] {
			continue // The equal row still has the centre.
		}
		for o := range c {
			at := i*c + o
			// The residual without the row is that with it over 1 − h.
			coefficient := coefficients.Data[k*c+o] - g[k]*(scaled[at]-out[at])
			out[at] -= g[k] * coefficient / (rest[i]*length[k] + g[k]*g[k])
		}
	}
}
