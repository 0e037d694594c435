package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// bowl is a random quadratic −(x − top)ᵀH(x − top) with a condition number of H.
type bowl struct {
	h   *mat.SymDense
	top []float64
}

func newBowl(rng *rand.Rand, d int, condition float64, diagonal bool) bowl {
	b := bowl{h: mat.NewSymDense(d, nil), top: make([]float64, d)}
	root := mat.NewDense(d, d, nil)
	for i := range d {
		b.top[i] = 0.3 + 0.4*rng.Float64()
		for k := range d {
			if i == k || !diagonal {
				root.Set(i, k, rng.NormFloat64())
			}
		}
	}
	var qr mat.QR
	qr.Factorize(root)
	var q, scaled mat.Dense
	qr.QTo(&q)
	values := make([]float64, d)
	for i := range values {
		values[i] = math.Pow(condition, float64(i)/float64(max(d-1, 1)))
	}
	scaled.Mul(&q, mat.NewDiagDense(d, values))
	var h mat.Dense
	h.Mul(&scaled, q.T())
	for i := range d {
		for k := range i + 1 {
			b.h.SetSym(i, k, h.At(i, k))
		}
	}
	return b
}

func (b bowl) At(x []float64) float64 {
	z := make([]float64, len(x))
	for c := range z {
		z[c] = x[c] - b.top[c]
	}
	v := mat.NewVecDense(len(z), z)
	return -mat.Inner(v, b.h, v)
}

// results returns n random results of f, best first.
func results(rng *rand.Rand, n, d int, f func(x []float64) float64) []Evaluation {
	out := make([]Evaluation, n)
	for i := range out {
		out[i].X = make([]float64, d)
		for c := range d {
			out[i].X[c] = rng.Float64()
		}
		out[i].Y = f(out[i].X)
	}
	slices.SortFunc(out, func(a, b Evaluation) int {
		if a.Y > b.Y {
			return -1
		}
		return 1
	})
	return out
}

// The top of a quadratic is found from as many results as it has terms and some more.
func TestQuadraticFindsTheTop(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for _, d := range []int{2, 3, 5, 8} {
		for _, diagonal := range []bool{true, false} {
			b := newBowl(rng, d, 1e4, diagonal)
			p := terms(d, !diagonal)
			list := results(rng, p+max(2, p/5), d, b.At)
			q := FitQuadratic(list)
			if q == nil {
				t.Errorf("d = %d, diagonal %t: no quadratic", d, diagonal)
				continue
			}
			if got, want := b.At(q.Top()), list[0].Y; !(got > 1e-6*want) {
				t.Errorf("d = %d, diagonal %t: %g at the top, %g is the best result", d, diagonal, got, want)
			}
		}
	}
}

// The regression and the error that leaves one out agree with least squares by QR on all results
// and on all but one.
func TestQuadraticAgreesWithLeastSquares(t *testing.T) {
	const seed = 5
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	for range 20 {
		d, full := 1+rng.IntN(4), rng.IntN(2) == 0
		p := terms(d, full)
		list := results(rng, 2*p+rng.IntN(p), d, func(x []float64) float64 {
			return math.Sin(4*x[0]) + x[d-1]*x[d-1] + 0.1*rng.NormFloat64()
		})
		q := regress(list, full)
		if q == nil {
			t.Fatal("no regression")
		}
		row := func(x []float64) []float64 { // all terms, computed apart
			out := []float64{1}
			for c, v := range x {
				out = append(out, v, v*v)
				for k := range c {
					if full {
						out = append(out, v*x[k])
					}
				}
			}
			return out
		}
		predict := func(except int, x []float64) float64 {
			a, y := mat.NewDense(len(list)-1, p, nil), mat.NewVecDense(len(list)-1, nil)
			at := 0
			for i, r := range list {
				if i != except && at < len(list)-1 {
					a.SetRow(at, row(r.X))
					y.SetVec(at, r.Y)
					at++
				}
			}
			var w mat.VecDense
			if err := w.SolveVec(a, y); err != nil {
				t.Fatal(err)
			}
			return mat.Dot(&w, mat.NewVecDense(p, row(x)))
		}
		mean, left, total := 0.0, 0.0, 0.0
		for _, r := range list {
			mean += r.Y / float64(len(list))
		}
		for i, r := range list {
			e := r.Y - predict(i, r.X)
			left, total = left+e*e, total+(r.Y-mean)*(r.Y-mean)
		}
		if want := left / total; math.Abs(q.left-want) > 1e-5*want {
			t.Errorf("d = %d, full %t: %g of the variance is left, want %g", d, full, q.left, want)
		}
		all := append(slices.Clone(list), Evaluation{list[0].X, math.NaN()})
		list = all // predict leaves the last one out
		x := list[1].X
		got := list[0].Y + q.At(x)*(list[0].Y-list[len(list)-2].Y)
		if want := predict(len(list)-1, x); math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
			t.Errorf("d = %d, full %t: %g at a result, want %g", d, full, got, want)
		}
	}
}

// No point of a grid within bounds is better than the top in two dimensions, whether the quadratic
// has a maximum, a saddle or a minimum.
func TestQuadraticTopWithinBounds(t *testing.T) {
	const seed = 7
	rng := rand.New(rand.NewPCG(seed, 1))
	t.Logf("seed %d", seed)
	missed := 0
	const rounds = 100
	for range rounds {
		w := [5]float64{}
		for i := range w {
			w[i] = rng.NormFloat64()
		}
		list := results(rng, 12, 2, func(x []float64) float64 {
			return w[0]*x[0] + w[1]*x[1] + w[2]*x[0]*x[0] + w[3]*x[1]*x[1] + w[4]*x[0]*x[1]
		})
		q := regress(list, true)
		if q == nil {
			t.Fatal("no regression")
		}
		x := q.Top()
		best := math.Inf(-1)
		for i := range 41 {
			for k := range 41 {
				z := []float64{q.low[0] + (q.high[0]-q.low[0])*float64(i)/40, q.low[1] + (q.high[1]-q.low[1])*float64(k)/40}
				best = max(best, q.At([]float64{q.center[0] + z[0]*q.scale[0], q.center[1] + z[1]*q.scale[1]}))
			}
		}
		for c, v := range x {
			if z := (v - q.center[c]) / q.scale[c]; z < q.low[c]-1e-9 || z > q.high[c]+1e-9 {
				t.Errorf("coordinate %d is %g, outside of the bounds", c, v)
			}
		}
		if q.At(x) < -1e-9 {
			t.Errorf("the top has %g, less than the best result", q.At(x))
		}
		if q.At(x) < best-1e-6 {
			missed++ // a saddle or a minimum may have several corners that no coordinate improves
		}
	}
	if missed > rounds/5 {
		t.Errorf("a grid was better than the top in %d rounds of %d", missed, rounds)
	}
}

// Results that no quadratic explains, or that have no regression, give none.
func TestNoQuadratic(t *testing.T) {
	rng := rand.New(rand.NewPCG(9, 1))
	equal := func([]float64) float64 { return 4 }
	for name, list := range map[string][]Evaluation{
		"none":      nil,
		"one":       results(rng, 1, 3, equal),
		"constant":  results(rng, 40, 3, equal),
		"noise":     results(rng, 40, 3, func([]float64) float64 { return rng.NormFloat64() }),
		"too large": results(rng, 40, 3, func(x []float64) float64 { return math.MaxFloat64 * (2*math.Round(x[0]) - 1) }),
		"one line": results(rng, 40, 3, func(x []float64) float64 {
			x[1], x[2] = 0.5, 0.5
			return x[0]
		}),
		"rugged": results(rng, 40, 3, func(x []float64) float64 { return math.Sin(50 * (x[0] + 2*x[1] + 3*x[2])) }),
	} {
		if q := FitQuadratic(list); q != nil {
			t.Errorf("%s: a quadratic that leaves %g of the variance", name, q.left)
		}
	}
	list := results(rng, 10, 3, func(x []float64) float64 { return -x[0] * x[0] })
	for range 5 {
		list = append(list, list...) // repeated, and then too few
	}
	if q := regress(list[:60], true); q != nil {
		for _, v := range q.Top() {
			if !(v >= 0 && v <= 1) {
				t.Errorf("repeated results: the top is at %g", v)
			}
		}
	}
}
