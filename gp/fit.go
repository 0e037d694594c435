package gp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// FitOptions holds the settings of [Fit]. The zero value is maximum likelihood of the
// exact process, without priors, from four starts.
type FitOptions struct {
	// Prior returns the prior of a kernel parameter, or nil for none. See [DimensionScaled].
	Prior func(kernel.Parameter) Prior
	// LengthScales, unless nil, is the joint prior of all length scales, in place of Prior.
	LengthScales *Exchangeable
	// NoisePrior is the prior of the noise variance of standardised targets.
	NoisePrior Prior
	// Bounds returns the limits of a kernel parameter, 0 < lo ≤ hi. By default a length
	// scale is within 1e-3 and 1e3 of the spread of the inputs, and every other
	// parameter within a factor 1e6 of its start.
	Bounds func(kernel.Parameter) (lo, hi float64)
	// NoiseVariance is the start of the noise variance, in units of the variance of the
	// targets. If 0, it is 0.01.
	NoiseVariance float64
	// MinNoise is the least noise variance, in the same units. If 0, it is 1e-6.
	// Effective dimensions grow without limit as the noise falls.
	MinNoise float64
	// Starts is the number of starting points, which are the kernel as given, the kernel
	// scaled to the data, and a fixed sequence around that. If 0, it is 4.
	Starts int
	// MaxIterations limits the iterations of each start. If 0, it is 60.
	MaxIterations int
	// Tolerance is the rise of the log posterior below which two iterations in a row end
	// a start. If 0, it is the limit of rounding.
	Tolerance float64
	// Workers is as in [Options].
	Workers int
}

func (o FitOptions) check(k kernel.Kernel, data Data) error {
	if k == nil {
		return errors.New("gp: no kernel")
	}
	if data.len() == 0 || data.X == nil {
		return shapeError("y", data.len(), 1)
	}
	for _, v := range []struct {
		name  string
		value float64
	}{{"noise variance", o.NoiseVariance}, {"least noise variance", o.MinNoise}, {"tolerance", o.Tolerance}} {
		if !(v.value >= 0) || !isFinite(v.value) {
			return valueError(v.name, -1, v.value, "> 0, or 0 for the default")
		}
	}
	if l := o.LengthScales; l != nil && !(l.Tau > 0 && l.Tau <= l.Sigma) {
		return valueError("Tau of length scales", -1, l.Tau, "> 0 and at most Sigma")
	}
	return data.check(k, nil, 0)
}

func (o FitOptions) withDefaults() FitOptions {
	set := func(v *float64, def float64) {
		if *v == 0 {
			*v = def
		}
	}
	set(&o.NoiseVariance, 1e-2)
	set(&o.MinNoise, 1e-6)
	if o.Starts <= 0 {
		o.Starts = 4
	}
	if o.MaxIterations <= 0 {
		o.MaxIterations = 60
	}
	return o
}

// FitResult is the result of [Fit]. Kernel and NoiseVariance are for standardised
// targets (y − Shift)/Scale, which Standardise returns. In the units of the targets the
// kernel is Scale²·Kernel, the noise variance Scale²·NoiseVariance and the mean Shift.
type FitResult struct {
	Kernel        kernel.Kernel
	NoiseVariance float64
	Shift, Scale  float64

	LogPosterior float64 // log evidence + log prior densities, standardised
	Best         int     // index of the start that led here
	Starts       []FitTrace
}

// Standardise returns (y − Shift)/Scale.
func (r *FitResult) Standardise(y []float64) []float64 {
	out := make([]float64, len(y))
	for i, v := range y {
		out[i] = (v - r.Shift) / r.Scale
	}
	return out
}

// Fit chooses the hyper-parameters of k and the noise variance that maximise the log posterior
//
//	log p(y | θ, ξ²) + Σ_j log p_j(θ_j) + log p(ξ²)
//
// of standardised targets, over log θ and log ξ², by projected L-BFGS from several
// starts. Kernels without hyper-parameters are allowed. Equal inputs are merged. No random
// numbers are used.
//
// Every evaluation costs O(u³ + u²p) for u different inputs. Its errors are those of [NewExact],
// [ErrFit], and ctx.Err() together with the best result so far, or nil if there is none.
func Fit(ctx context.Context, k kernel.Kernel, data Data, opts FitOptions) (*FitResult, error) {
	if err := opts.check(k, data); err != nil {
		return nil, err
	}
	f, err := newFitting(k, data, opts.withDefaults())
	if err != nil {
		return nil, err
	}
	f.result.LogPosterior = math.Inf(-1)
	var best []float64
	found := false
	for i, x0 := range f.starts() {
		if ctx.Err() != nil {
			break
		}
		d := minimise(ctx, f.objective, x0, f.lo, f.hi, f.opts.MaxIterations, f.opts.Tolerance)
		f.result.Starts = append(f.result.Starts, d)
		if -d.Value > f.result.LogPosterior {
			f.result.LogPosterior, f.result.Best, best, found = -d.Value, i, d.End, true
		}
	}
	if !found {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: %w", ErrFit, f.lastErr)
	}
	if f.result.Kernel, f.result.NoiseVariance, err = f.at(best); err != nil {
		return nil, err
	}
	return f.result, ctx.Err()
}

// ErrFit says that the evidence could not be computed at any start.
var ErrFit = errors.New("gp: no start has a finite posterior density")

// fitting is one call of Fit.
type fitting struct {
	k       kernel.Kernel
	params  []kernel.Parameter
	obs     *observations // standardised
	opts    FitOptions
	lo, hi  []float64
	spread  float64
	result  *FitResult
	work    workspace
	lastErr error
}

func newFitting(k kernel.Kernel, data Data, opts FitOptions) (*fitting, error) {
	f := &fitting{k: k, opts: opts, result: &FitResult{}, lastErr: errors.New("not finite")}
	if t, ok := kernel.AsTunable(k); ok {
		f.params = t.Parameters()
	}
	f.result.Shift, f.result.Scale = standardisation(data.Y)
	std := Data{X: data.X, Y: f.result.Standardise(data.Y), Noise: slices.Clone(data.Noise)}
	for i := range std.Noise {
		std.Noise[i] = min(std.Noise[i]/f.result.Scale/f.result.Scale, maxTarget)
	}
	f.obs = newObservations(std, true)
	f.spread = spread(f.obs.x)
	return f, f.bounds()
}

// standardisation returns mean and standard deviation, or 1 where that is not a normal number.
func standardisation(y []float64) (shift, scale float64) {
	big := 0.0
	for _, v := range y {
		shift += v / float64(len(y))
	}
	for _, v := range y {
		big = max(big, math.Abs(v-shift))
	}
	if big < 1e-290 || big < 1e-14*math.Abs(shift) {
		return shift, 1
	}
	s := 0.0
	for _, v := range y {
		r := (v - shift) / big
		s += r * r / float64(len(y))
	}
	return shift, big * math.Sqrt(s)
}

// spread returns a typical distance, or 0 if it is unknown. It is √2 times the root of
// the summed variances of the coordinates, by their median when they are dense.
func spread(x kernel.Rows) float64 {
	d, n := x.Dim(), x.Len()
	switch x.(type) {
	case *kernel.Points[float64], *kernel.Points[float32]:
	default:
		return 0
	}
	if d < 1 {
		return 0
	}
	row, mean, sq := make([]float64, d), make([]float64, d), make([]float64, d)
	for i := range n {
		kernel.CopyRow(row, x, i)
		for c, v := range row {
			delta := v - mean[c]
			mean[c] += delta / float64(i+1)
			sq[c] += delta * (v - mean[c])
		}
	}
	slices.Sort(sq)
	s := math.Sqrt(2 * float64(d) * sq[d/2] / float64(n))
	if !isFinite(s) {
		return 0
	}
	return s
}

// bounds sets lo and hi, in logarithms.
func (f *fitting) bounds() error {
	for _, p := range f.params {
		lo, hi := p.Value*1e-6, p.Value*1e6
		if isLengthScale(p) && f.spread > 0 {
			lo, hi = min(f.spread*1e-3, p.Value), max(f.spread*1e3, p.Value)
		}
		if f.opts.Bounds != nil {
			lo, hi = f.opts.Bounds(p)
		}
		if !(lo > 0 && lo <= hi) || !isFinite(hi) {
			return fmt.Errorf("gp: bounds of %s: [%v, %v], want 0 < lo ≤ hi", p.Name, lo, hi)
		}
		f.lo, f.hi = append(f.lo, math.Log(lo)), append(f.hi, math.Log(hi))
	}
	f.lo = append(f.lo, math.Log(f.opts.MinNoise))
	f.hi = append(f.hi, math.Log(max(1e2, f.opts.MinNoise)))
	return nil
}

// starts returns the starting points.
func (f *fitting) starts() [][]float64 {
	p := len(f.lo)
	given := make([]float64, 0, p)
	for _, q := range f.params {
		given = append(given, math.Log(q.Value))
	}
	given = append(given, math.Log(f.opts.NoiseVariance))
	out := [][]float64{project(given, f.lo, f.hi)}
	scaled := slices.Clone(given)
	for i, q := range f.params {
		switch {
		case isLengthScale(q) && f.spread > 0:
			scaled[i] = math.Log(f.spread / 2)
		case isFactor(q):
			scaled[i] = 0
		}
	}
	for s := 1; s < f.opts.Starts; s++ {
		x := slices.Clone(scaled)
		for i := range x {
			if s > 1 {
				x[i] += 4 * (recurrence(s-1, i, p) - 0.5)
			}
		}
		out = append(out, project(x, f.lo, f.hi))
	}
	return out
}

// recurrence is point n, coordinate c of Roberts' sequence in p dimensions. It is the
// fractional part of n·g^−(c+1), where g^(p+1) = g + 1.
func recurrence(n, c, p int) float64 {
	g := 1.5
	for range 50 {
		g = math.Pow(1+g, 1/float64(p+1))
	}
	_, frac := math.Modf(float64(n) * math.Pow(g, -float64(c+1)))
	return frac
}

// at returns kernel and noise variance at x.
func (f *fitting) at(x []float64) (kernel.Kernel, float64, error) {
	noise := math.Exp(x[len(f.params)])
	t, ok := kernel.AsTunable(f.k)
	if !ok || len(f.params) == 0 {
		return f.k, noise, nil
	}
	k, err := t.WithLogParameters(x[:len(f.params)])
	return k, noise, err
}

// objective is minus the log posterior.
func (f *fitting) objective(x, grad []float64) float64 {
	k, noise, err := f.at(x)
	if err != nil {
		f.lastErr = err
		return math.Inf(1)
	}
	g, err := f.model(k, noise)
	if err != nil {
		f.lastErr = err
		return math.Inf(1)
	}
	evidence := g.evidence(&f.work)
	prior, slopes := f.prior(x)
	for i := range grad {
		s := slopes[i]
		if i < len(f.params) {
			s += evidence.Kernel[i]
		} else {
			s += evidence.Noise
		}
		grad[i] = -s
	}
	return -evidence.Value - prior
}

// prior returns Σ log p and its slopes.
func (f *fitting) prior(x []float64) (value float64, slopes []float64) {
	slopes = make([]float64, len(x))
	var scales []int
	for i := range x {
		var p Prior
		switch {
		case i >= len(f.params):
			p = f.opts.NoisePrior
		case f.opts.LengthScales != nil && isLengthScale(f.params[i]):
			scales = append(scales, i)
		case f.opts.Prior != nil:
			p = f.opts.Prior(f.params[i])
		}
		if p != nil {
			v, s := p.LogDensity(math.Exp(x[i]))
			value += v
			slopes[i] = s
		}
	}
	if len(scales) > 0 {
		logs, by := make([]float64, len(scales)), make([]float64, len(scales))
		for j, i := range scales {
			logs[j] = x[i]
		}
		value += f.opts.LengthScales.LogDensity(logs, by)
		for j, i := range scales {
			slopes[i] = by[j]
		}
	}
	return value, slopes
}

// model returns the exact process at given hyper-parameters.
func (f *fitting) model(k kernel.Kernel, noise float64) (*Exact, error) {
	g := &Exact{k: k, obs: f.obs, opts: Options{NoiseVariance: noise, Workers: f.opts.Workers}}
	if err := g.refactor(&f.work); err != nil {
		return nil, err
	}
	g.solve()
	return g, nil
}
