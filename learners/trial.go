package learners

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

const (
	// trialRows is the number of rows that a trial fits for each centre, up to mostRows in
	// all. It measures on as many others.
	trialRows = 8
	mostRows  = 1000
	// trialCenters is the largest number of centres that a trial fits, which bounds its
	// cost. bench/docs/reproductions.md has its share of a fit.
	trialCenters = 250
	// leastTrial is the smallest number of centres that a trial fits.
	leastTrial = 5
	// trialGain is the ratio of root mean square errors that makes a sampler's centres
	// worth taking, see bench/docs/reproductions.md.
	trialGain = 0.9
	// trialHint is the ratio in the first trial that makes a second one worth its time.
	trialHint = 0.95
	// inMemory is the largest number of rows whose order is shuffled in memory, which is
	// quicker than to compute it.
	inMemory = 1 << 14
)

// Tried is a sampler whose centres are used only if they have clearly less error than
// uniform ones in two trials together. Otherwise the fit has as many uniform centres.
//
// Leverage scores at which M is below d_eff(λ) prefer rows in regions of low density, which
// inputs alone do not show to be good. A trial fits half of the centres, and as many uniform
// ones, to 4 to 8 rows for each of them, and measures the squared error on other rows. If it
// shows a gain of 5 %, a second trial takes other centres and rows, and the geometric mean of
// both ratios of errors counts.
//
// A trial needs rows with targets, and the λ that [Sampling.For] sets. There is none if
// the λ of the sampler is given. The centres of an output depend on the other outputs.
type Tried struct {
	sketch.Budgeted
	lambda float64 // of the trial, 0 for none
}

// Budget returns the sampler with a budget. BLESS and BLESSR do not estimate effective
// dimensions then, because a fit has no use for them.
func (t Tried) Budget(points int) sketch.Sampler {
	s := t.Budgeted.Budget(points)
	switch b := s.(type) {
	case sketch.BLESS:
		b.NoDimension = true
		return b
	case sketch.BLESSR:
		b.NoDimension = true
		return b
	}
	return s
}

// gains reports whether the centres pass two trials together. They do if there is none because
// of too few rows, or because of an error. Such an error is for the fit to report. They do not
// if their fit alone is not finite.
//
// Rows count by their weights.
func (c *Centers) gains(ctx context.Context, k kernel.Kernel, src data.Source, weights []float64, lambda float64, seed uint64) bool {
	m := c.Len()
	size := min(m/2, trialCenters)
	if size < leastTrial || src.Outputs() == 0 {
		return true
	}
	rng := stream.New(stream.Derive(seed, "centers trial", 0))
	order := rng.Perm(m)
	ratio := 1.0
	for i, most := range []float64{trialHint, trialGain * trialGain} {
		own := data.Pick(c.Indices, slices.Sorted(slices.Values(order[i*size:][:size])))
		chosen, other, ok := compare(ctx, k, src, weights, lambda, own, rng.Uint64())
		if !ok || !(other < math.Inf(1)) {
			return true
		}
		if ratio *= math.Sqrt(chosen / other); !(ratio < most) {
			return false
		}
	}
	return true
}

// compare returns the squared errors of a trial of the rows own as centres, and of as many
// uniform ones. If ok is false there are too few rows, or they cannot be read.
func compare(ctx context.Context, k kernel.Kernel, src data.Source, weights []float64, lambda float64, own []int, seed uint64) (chosen, other float64, ok bool) {
	size := len(own)
	order := others(own, src.Len(), 2*min(trialRows*size, mostRows), seed)
	fitted := len(order) / 2
	if fitted < size {
		return 0, 0, false
	}
	rows := append(own, order[:2*fitted]...)
	t := trials.Get().(*trial)
	defer t.end()
	t.k, t.lambda, t.fitted, t.c = k, lambda, size+fitted, src.Outputs()
	if err := t.read(ctx, src, rows); err != nil {
		return 0, 0, false
	}
	t.weights = data.Pick(weights, rows)
	return t.error(0, size), t.error(size, 2*size), true
}

// others returns up to m numbers below n, in random order, that are not in the increasing
// list except.
func others(except []int, n, m int, seed uint64) []int {
	at := stream.NewPermutation(seed, uint64(n)).At
	if n <= inMemory {
		order := stream.New(seed).Perm(n)
		at = func(i uint64) uint64 { return uint64(order[i]) }
	}
	out := make([]int, 0, min(m, n))
	for i := uint64(0); len(out) < m && i < uint64(n); i++ {
		v := int(at(i))
		if _, found := slices.BinarySearch(except, v); !found {
			out = append(out, v)
		}
	}
	return out
}

// trial fits centres to a few rows by Nyström regression.
type trial struct {
	k      kernel.Kernel
	lambda float64
	// x and y are the rows in the order of the trial. The first ones are fitted, and the
	// others measured.
	x       kernel.Rows
	y       []float64
	weights []float64 // of these rows, nil if all count alike
	fitted  int
	c       int

	scratch              kernel.Scratch
	matrix, factor, gram []float64
}

// trials keeps the memory of trials between choices.
var trials = sync.Pool{New: func() any { return new(trial) }}

// end gives the memory back.
func (t *trial) end() {
	*t = trial{scratch: t.scratch, matrix: t.matrix, factor: t.factor, gram: t.gram}
	trials.Put(t)
}

// read reads rows of src in one pass.
func (t *trial) read(ctx context.Context, src data.Source, rows []int) error {
	at := rows
	all, ok := src.(*data.Memory)
	if !ok {
		sorted := slices.Sorted(slices.Values(rows))
		part, err := data.Subset(src, sorted)
		if err != nil {
			return err
		}
		if all, err = data.Load(ctx, part); err != nil {
			return err
		}
		at = make([]int, len(rows))
		for i, v := range rows {
			at[i], _ = slices.BinarySearch(sorted, v)
		}
	}
	t.x = all.Rows().Select(at)
	t.y = make([]float64, 0, len(rows)*t.c)
	for _, i := range at {
		t.y = append(t.y, all.Targets()[i*t.c:][:t.c]...)
	}
	return t.k.Check(t.x)
}

// error fits the rows with the centres from ≤ i < to, which are rows themselves, and returns
// the sum of the squared errors on the rows to measure. It is infinite or NaN without a fit.
//
// With K_MM = LLᵀ and Z = K L⁻ᵀ for the n rows, the coefficients are w = L⁻ᵀv, where
// (ZᵀSZ + λn)v = ZᵀSy. The normal equations of w itself would lose the directions in which
// K_MM is small, and with them the fit of centres in clusters. The diagonal of K_MM grows by
// its rounding error, m·2⁻⁵⁰ of the largest element.
func (t *trial) error(from, to int) float64 {
	m, n, all := to-from, t.fitted, t.x.Len()
	k := blocked.New(all, m, simd.Sized(&t.matrix, all*m))
	kernel.Prepare(t.k, t.x.Slice(from, to)).Fill(k.Data, m, t.x, 0, all, &t.scratch)
	l := blocked.New(m, m, simd.Sized(&t.factor, m*m))
	copy(l.Data, k.Data[from*m:to*m])
	raise(l, 0)
	if blocked.Cholesky(1, l) < m {
		return math.Inf(1)
	}
	z, test := k.Sub(0, 0, n, m), k.Sub(n, 0, all, m)
	blocked.SolveLowerRight(1, true, l, z)
	y := t.y[:n*t.c]
	if t.weights != nil {
		y = slices.Clone(y)
		for i, s := range t.weights[:n] {
			root := math.Sqrt(s)
			for j := range m {
				z.Data[i*m+j] *= root
			}
			for j := range t.c {
				y[i*t.c+j] *= root
			}
		}
	}
	gram := blocked.New(m, m, simd.Sized(&t.gram, m*m))
	blocked.Syrk(1, true, z, 1, 0, gram)
	raise(gram, sketch.Ridge(t.lambda, n))
	if blocked.Cholesky(1, gram) < m {
		return math.Inf(1)
	}
	w := blocked.New[float64](m, t.c, nil)
	times(true, z, blocked.New(n, t.c, y), w)
	blocked.SolveLower(1, false, gram, w)
	blocked.SolveLower(1, true, gram, w)
	blocked.SolveLower(1, true, l, w)
	f := blocked.New[float64](all-n, t.c, nil)
	times(false, test, w, f)
	sum := 0.0
	for i, v := range f.Data {
		s := 1.0
		if t.weights != nil {
			s = t.weights[n+i/t.c]
		}
		e := v - t.y[n*t.c+i]
		sum += s * e * e
	}
	return sum
}

// raise adds a ridge to the diagonal of a, or its rounding error if that is more.
func raise(a blocked.Matrix[float64], ridge float64) {
	m, largest := a.Rows, 0.0
	for j := range m {
		largest = max(largest, a.Data[j*m+j])
	}
	for j := range m {
		a.Data[j*m+j] += max(ridge, float64(m)*0x1p-50*largest)
	}
}

// times sets c = op(a)b. It takes a single column as a vector, which is quicker.
func times(trans bool, a, b, c blocked.Matrix[float64]) {
	if b.Cols == 1 {
		blocked.Gemv(1, trans, a, b.Data, 1, 0, c.Data)
		return
	}
	blocked.Gemm(1, trans, a, false, b, 1, 0, c)
}
