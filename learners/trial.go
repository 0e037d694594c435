package learners

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
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
	// cost. docs/reproductions.md has its share of a fit.
	trialCenters = 250
	// leastTrial is the smallest number of centres that a trial fits.
	leastTrial = 5
	// trialGain is the ratio of root mean square errors that makes a sampler's centres
	// worth taking. Draws of one kind differ by about 5 %. docs/reproductions.md has what
	// other ratios gain and lose.
	trialGain = 0.9
	// inMemory is the largest number of rows whose order is shuffled in memory, which is
	// quicker than to compute it.
	inMemory = 1 << 14
)

// Tried is a sampler whose centres are used only if they have clearly less error than
// uniform ones in a trial. Otherwise the fit has as many uniform centres.
//
// Leverage scores at which M is below d_eff(λ) prefer rows in regions of low density. That
// gains much if few rows matter, and loses some per cent if the function is rough in dense
// regions. Inputs alone do not tell which, so the trial fits the targets. It fits half of
// the centres, and as many uniform ones, to 4 to 8 rows for each of them. It measures
// the squared error on other rows. Fewer centres would not show a gain in rare rows, because
// the other rows then have the larger error.
//
// The trial needs rows with targets, and the λ that [Sampling.For] sets. There is none if
// the λ of the sampler is given. Then the sampler works as in its papers. The centres of an
// output depend on the other outputs.
type Tried struct {
	sketch.Budgeted
	lambda float64 // of the trial, 0 for none
}

// gains reports whether the centres pass the trial. They do if there is none because of
// too few rows, or because of an error. Such an error is for the fit to report.
//
// Rows count by their weights. Those of the weight 0 have no part, except as centres.
func (c *Centers) gains(ctx context.Context, k kernel.Kernel, src data.Source, weights []float64, lambda float64, seed uint64) bool {
	m := c.Len()
	size := min(m/2, trialCenters)
	if size < leastTrial || src.Outputs() == 0 {
		return true
	}
	weights, err := RowWeights("the trial of centres", src, Options{Weights: weights})
	if err != nil {
		return true
	}
	rng := stream.New(stream.Derive(seed, "centers trial", 0))
	own := pick(c.Indices, some(m, size, rng))
	order := others(own, src.Len(), 2*min(trialRows*size, mostRows), weights, rng.Uint64())
	fitted := len(order) / 2
	if fitted < size {
		return true
	}
	order = order[:2*fitted]
	uniform := slices.Clone(order[:size])
	slices.Sort(uniform)
	fit, test := slices.Concat(own, order[:fitted]), order[fitted:]
	slices.Sort(fit)
	slices.Sort(test)
	t := trial{ctx: ctx, k: k, lambda: lambda, c: src.Outputs()}
	if weights != nil {
		counted := 0
		for _, s := range weights {
			if s > 0 {
				counted++
			}
		}
		for i := range weights { // so that λ is that of the fit
			weights[i] *= float64(counted) / float64(len(weights))
		}
		t.weights, t.testWeights = pick(weights, fit), pick(weights, test)
	}
	rows, err := t.read(src, fit)
	if err != nil {
		return true
	}
	t.x, t.y = rows.Rows(), rows.Targets()
	if rows, err = t.read(src, test); err != nil {
		return true
	}
	t.testX, t.testY = rows.Rows(), rows.Targets()
	chosen, err := t.error(t.among(fit, own))
	if err != nil {
		return true
	}
	other, err := t.error(t.among(fit, uniform))
	return err != nil || !(other < math.Inf(1)) || chosen < trialGain*trialGain*other
}

// some returns m of the numbers below n, in increasing order.
func some(n, m int, rng *rand.Rand) []int {
	out := rng.Perm(n)[:m]
	slices.Sort(out)
	return out
}

// others returns up to m numbers below n, in random order, that are not in the increasing
// list except and have no weight 0. Nil weights are 1.
func others(except []int, n, m int, weights []float64, seed uint64) []int {
	at := stream.NewPermutation(seed, uint64(n)).At
	if n <= inMemory {
		order := stream.New(seed).Perm(n)
		at = func(i uint64) uint64 { return uint64(order[i]) }
	}
	out := make([]int, 0, min(m, n))
	for i := uint64(0); len(out) < m && i < uint64(n); i++ {
		v := int(at(i))
		if weights != nil && weights[v] == 0 {
			continue
		}
		if _, found := slices.BinarySearch(except, v); !found {
			out = append(out, v)
		}
	}
	return out
}

func pick[T any](from []T, at []int) []T {
	out := make([]T, len(at))
	for i, v := range at {
		out[i] = from[v]
	}
	return out
}

// trial fits centres to a few rows by Nyström regression.
type trial struct {
	ctx      context.Context
	k        kernel.Kernel
	lambda   float64
	x, testX kernel.Rows
	y, testY []float64
	// weights are those of x and testX, nil if all count alike
	weights, testWeights []float64
	c                    int
	scratch              kernel.Scratch
	memory               []float64 // of matrix
}

// read returns rows of src in memory.
func (t *trial) read(src data.Source, idx []int) (*data.Memory, error) {
	part, err := data.Subset(src, idx)
	if err != nil {
		return nil, err
	}
	return data.Load(t.ctx, part)
}

// among returns rows of t.x, by their indices in the source. fit are those of t.x.
func (t *trial) among(fit, idx []int) kernel.Rows {
	at := make([]int, len(idx))
	for i, v := range idx {
		at[i], _ = slices.BinarySearch(fit, v)
	}
	return t.x.Select(at)
}

// matrix returns k of the rows x and m centres. The next one overwrites it.
func (t *trial) matrix(x kernel.Rows, centers kernel.Prepared, m int) blocked.Matrix[float64] {
	n := x.Len()
	if cap(t.memory) < n*m {
		t.memory = make([]float64, n*m)
	}
	k := blocked.New(n, m, t.memory[:n*m])
	centers.Fill(k.Data, m, x, 0, n, &t.scratch)
	return k
}

// error returns the sum of the squared errors on the rows for testing.
func (t *trial) error(centers kernel.Rows) (float64, error) {
	e, err := sketch.NewEmbedding(t.k, centers, 0, 1)
	if err != nil {
		return 0, err
	}
	r, n := e.Rank(), t.x.Len()
	l := blocked.New(r, r, e.Factor())
	columns := kernel.Prepare(t.k, e.Points()) // NewEmbedding has checked them
	z := t.matrix(t.x, columns, r)
	blocked.SolveLowerRight(1, true, l, z)
	y := t.y
	if t.weights != nil {
		y = slices.Clone(y)
		for i, s := range t.weights {
			root := math.Sqrt(s)
			for j := range r {
				z.Data[i*r+j] *= root
			}
			for j := range t.c {
				y[i*t.c+j] *= root
			}
		}
	}
	gram, w := blocked.New(r, r, make([]float64, r*r)), blocked.New(r, t.c, make([]float64, r*t.c))
	blocked.Syrk(1, true, z, 1, 0, gram)
	largest := 0.0
	for j := range r {
		largest = max(largest, gram.Data[j*r+j])
	}
	for j := range r {
		gram.Data[j*r+j] += max(sketch.Ridge(t.lambda, n), float64(r)*0x1p-50*largest)
	}
	if blocked.Cholesky(1, gram) < r {
		return math.Inf(1), nil
	}
	times(true, z, blocked.New(n, t.c, y), w)
	blocked.SolveLower(1, false, gram, w)
	blocked.SolveLower(1, true, gram, w)
	blocked.SolveLower(1, true, l, w)
	if checkFinite("coefficients", w.Data, t.c) != nil {
		return math.Inf(1), nil // the targets are too large
	}
	f := blocked.New(t.testX.Len(), t.c, make([]float64, len(t.testY)))
	times(false, t.matrix(t.testX, columns, r), w, f)
	sum := 0.0
	for i, v := range f.Data {
		s := 1.0
		if t.testWeights != nil {
			s = t.testWeights[i/t.c]
		}
		sum += s * (v - t.testY[i]) * (v - t.testY[i])
	}
	return sum, nil
}

// times sets c = op(a)b. It takes a single column as a vector, which is quicker.
func times(trans bool, a, b, c blocked.Matrix[float64]) {
	if b.Cols == 1 {
		blocked.Gemv(1, trans, a, b.Data, 1, 0, c.Data)
		return
	}
	blocked.Gemm(1, trans, a, false, b, 1, 0, c)
}
