package gp_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// sparseModel is DTC or FITC by dense matrices of the size of the data.
func sparseModel(k kernel.Kernel, dict, x kernel.Rows, y []float64, noise float64, fitc bool, q kernel.Rows) model {
	qxx := nystrom(k, dict, x, x)
	diag := make([]float64, x.Len())
	for i := range diag {
		diag[i] = noise
		if fitc {
			diag[i] += k.Diag(x, i) - qxx.At(i, i)
		}
	}
	return condition(gram(k, q, q), nystrom(k, dict, q, x), addDiag(qxx, diag...), y)
}

func TestSparseEqualsDenseWoodbury(t *testing.T) {
	racetest.Alone(t)
	eachKernel(t, 3, func(t *testing.T, k kernel.Kernel, rng *rand.Rand) {
		const noise = 0.05
		x, y, q := uniform(rng, 80, 3), normals(rng, 80), uniform(rng, 30, 3)
		dict := x.Select(rng.Perm(80)[:12])
		for _, a := range []gp.Approximation{gp.DTC, gp.FITC, gp.SoR} {
			want := sparseModel(k, dict, x, y, noise, a == gp.FITC, q)
			if a == gp.SoR {
				res := nystrom(k, dict, q, q)
				for i := range want.variance {
					want.variance[i] -= k.Diag(q, i) - res.At(i, i)
				}
			}
			s := must(gp.NewSparse(k, dict, gp.Data{}, gp.SparseOptions{NoiseVariance: noise, Approximation: a}))
			for n := 0; n < 80; {
				c := min(1+rng.IntN(4), 80-n)
				if err := s.Observe(gp.Data{X: x.Slice(n, n+c), Y: y[n : n+c]}); err != nil {
					t.Fatal(err)
				}
				n += c
			}
			mean, variance := predict(t, s, q)
			near(t, fmt.Sprint(a, " mean"), mean, want.mean, 1e-8)
			near(t, fmt.Sprint(a, " variance"), variance, want.variance, 1e-8)
		}
	})
}

func TestSparseOnAllPointsIsExact(t *testing.T) {
	racetest.Alone(t)
	eachKernel(t, 3, func(t *testing.T, k kernel.Kernel, rng *rand.Rand) {
		pool := uniform(rng, 60, 3)
		x, q := repeated(rng, pool, 150), uniform(rng, 40, 3)
		y := normals(rng, 150)
		g := must(gp.NewExact(k, gp.Data{X: x, Y: y}, gp.Options{NoiseVariance: 0.1}))
		want, wantV := predict(t, g, q)
		for _, a := range []gp.Approximation{gp.DTC, gp.FITC} {
			s := must(gp.NewSparse(k, pool, gp.Data{X: x, Y: y}, gp.SparseOptions{NoiseVariance: 0.1, Approximation: a}))
			mean, variance := predict(t, s, q)
			near(t, "mean", mean, want, 1e-10)
			near(t, "variance", variance, wantV, 1e-10)
			near1(t, "log det", s.LogDet(), g.LogDet(), 1e-10)
		}
	})
}

func TestSparseDuplicatesAndDependentInducingPoints(t *testing.T) {
	rng := seeded(t)
	x, y, q := uniform(rng, 50, 3), normals(rng, 50), uniform(rng, 20, 3)
	linear := must(kernel.NewLinear(1)) // rank 3
	for name, k := range map[string]kernel.Kernel{"gaussian": kernels(3)["gaussian"], "linear": linear} {
		o := gp.SparseOptions{NoiseVariance: 0.1}
		a := must(gp.NewSparse(k, x.Slice(0, 10), gp.Data{X: x, Y: y}, o))
		b := must(gp.NewSparse(k, repeated(rng, x.Slice(0, 10), 200), gp.Data{X: x, Y: y}, o))
		if name == "linear" && (a.Rank() != 3 || b.Rank() != 3) {
			t.Errorf("rank %d and %d of a linear kernel in 3 dimensions", a.Rank(), b.Rank())
		}
		if b.Rank() > 10 {
			t.Errorf("%s: rank %d of at most 10 different points", name, b.Rank())
		}
		if name == "gaussian" && b.Rank() < 10 {
			continue // the draw left one out
		}
		m1, v1 := predict(t, a, q)
		m2, v2 := predict(t, b, q)
		near(t, name+" mean", m2, m1, 1e-9)
		near(t, name+" variance", v2, v1, 1e-9)
	}
}

// TestSparseTinyNoise compares the drift of 300 rank-one updates with a computation
// from scratch. If an inducing point has no observation, V is λ in a direction, and the
// mean's rounding is of order 1/λ.
func TestSparseTinyNoise(t *testing.T) {
	rng := seeded(t)
	k, x, q := kernels(2)["matern52"], uniform(rng, 30, 2), uniform(rng, 50, 2)
	for _, observed := range []int{30, 29} {
		for _, noise := range []float64{1e-6, 1e-9, 1e-12} {
			s := must(gp.NewSparse(k, x, gp.Data{}, gp.SparseOptions{NoiseVariance: noise}))
			for i, y := range normals(rng, 300) {
				if i >= observed { // each once, and then any
					i = rng.IntN(observed)
				}
				if err := s.Observe(gp.Data{X: x.Slice(i, i+1), Y: []float64{y}}); err != nil {
					t.Fatal(err)
				}
			}
			mean, variance := predict(t, s, q)
			if err := s.Resparsify(x); err != nil {
				t.Fatal(err)
			}
			m2, v2 := predict(t, s, q)
			tolerance := 1e-10
			if observed < 30 {
				tolerance += 3e-14 / noise // the largest of 1,000 draws is 4e-15/λ
			}
			near(t, "mean", mean, m2, tolerance)
			near(t, "variance", variance, v2, 1e-9)
			for i, v := range variance {
				if !(v > 0) || math.IsNaN(mean[i]) {
					t.Fatalf("noise %g: mean %g, variance %g", noise, mean[i], v)
				}
			}
		}
	}
}

// history drives a posterior with arms by random steps, and repeats them in a simple
// form with counts, sums and pending pulls.
type history struct {
	arms    kernel.Rows
	x       []int
	y       []float64
	pending map[int]int
}

func (h *history) data() gp.Data { return gp.Data{X: h.arms.Select(h.x), Y: h.y} }

// pendingData is the data with an invented target for every pending pull.
func (h *history) pendingData() gp.Data {
	idx, y := append([]int(nil), h.x...), append([]float64(nil), h.y...)
	for a, n := range h.pending {
		for range n {
			idx, y = append(idx, a), append(y, 0)
		}
	}
	return gp.Data{X: h.arms.Select(idx), Y: y}
}

func (h *history) step(t *testing.T, s *gp.Sparse, rng *rand.Rand) {
	t.Helper()
	a, y := rng.IntN(h.arms.Len()), rng.NormFloat64()
	var err error
	switch c := rng.IntN(20); {
	case c < 8:
		if rng.IntN(2) == 0 {
			err = s.ObserveArm(a, y)
		} else {
			err = s.Observe(gp.Data{X: h.arms.Slice(a, a+1), Y: []float64{y}})
		}
		h.x, h.y = append(h.x, a), append(h.y, y)
		if h.pending[a]--; h.pending[a] <= 0 {
			delete(h.pending, a)
		}
	case c < 14:
		if rng.IntN(2) == 0 {
			err = s.PullArm(a)
		} else {
			err = s.ObserveVariance(h.arms.Slice(a, a+1))
		}
		h.pending[a]++
	case c < 17:
		for b := range h.pending {
			a = b
			break
		}
		if h.pending[a] == 0 {
			break
		}
		err = s.CancelArm(a)
		if h.pending[a]--; h.pending[a] == 0 {
			delete(h.pending, a)
		}
	case c < 18:
		err = s.Resparsify(h.arms.Select(rng.Perm(h.arms.Len())[:3+rng.IntN(10)]))
	default: // resolve a pending pull
		for b := range h.pending {
			a = b
			break
		}
		err = s.ObserveArm(a, y)
		h.x, h.y = append(h.x, a), append(h.y, y)
		if h.pending[a]--; h.pending[a] <= 0 {
			delete(h.pending, a)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestArmsEqualPredictionAfterAnything(t *testing.T) {
	racetest.Alone(t)
	for _, a := range []gp.Approximation{gp.DTC, gp.FITC, gp.SoR} {
		for _, every := range []int{512, 7} {
			rng := seeded(t)
			arms := uniform(rng, 40, 2)
			h := &history{arms: arms, pending: map[int]int{}}
			o := gp.SparseOptions{NoiseVariance: 0.1, Approximation: a, Mean: 0.5}
			k := kernels(2)["matern52"]
			s := must(gp.NewSparse(k, arms.Slice(0, 8), gp.Data{}, o))
			s.SetAnchorEvery(every)
			if err := s.SetArms(arms, false); err != nil {
				t.Fatal(err)
			}
			for range 200 {
				h.step(t, s, rng)
				mean, variance := predict(t, s, arms)
				near(t, "arm means", s.ArmMeans(), mean, 1e-11)
				near(t, "arm variances", s.ArmVariances(), variance, 1e-11)
			}
			dict, _ := s.Inducing()
			fresh := must(gp.NewSparse(k, dict, h.data(), o))
			mean, _ := predict(t, fresh, arms)
			near(t, "means from scratch", s.ArmMeans(), mean, 1e-10)
			_, variance := predict(t, must(gp.NewSparse(k, dict, h.pendingData(), o)), arms)
			near(t, "variances from scratch", s.ArmVariances(), variance, 1e-10)
			if held := len(h.pendingData().Y) - len(h.y); s.Pending() != held || s.Len() != len(h.y) {
				t.Errorf("%d pending and %d observed, want %d and %d", s.Pending(), s.Len(), held, len(h.y))
			}
		}
	}
}

func TestLazyArmsAreUpperBounds(t *testing.T) {
	rng := seeded(t)
	arms := uniform(rng, 50, 2)
	s := must(gp.NewSparse(kernels(2)["gaussian"], arms.Slice(0, 15), gp.Data{}, gp.SparseOptions{NoiseVariance: 0.1}))
	if err := s.SetArms(arms, true); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		stale := append([]float64(nil), s.ArmVariances()...)
		if err := s.PullArm(rng.IntN(50)); err != nil {
			t.Fatal(err)
		}
		near(t, "stale variances", s.ArmVariances(), stale, 0)
		_, variance := predict(t, s, arms)
		for a, v := range variance {
			if s.ArmVariances()[a] < v-1e-12 {
				t.Fatalf("step %d: bound %g of arm %d below its variance %g", i, s.ArmVariances()[a], a, v)
			}
		}
		a := rng.IntN(50)
		s.RefreshArms([]int{a})
		near1(t, "refreshed", s.ArmVariances()[a], variance[a], 1e-12)
	}
}

func TestBatchEqualsOneByOne(t *testing.T) {
	rng := seeded(t)
	x, y := repeated(rng, uniform(rng, 40, 2), 200), normals(rng, 200)
	o := gp.SparseOptions{NoiseVariance: 0.1}
	k := kernels(2)["gaussian"]
	one := must(gp.NewSparse(k, x.Slice(0, 10), gp.Data{}, o))
	for i := range y {
		if err := one.Observe(gp.Data{X: x.Slice(i, i+1), Y: y[i : i+1]}); err != nil {
			t.Fatal(err)
		}
	}
	all := must(gp.NewSparse(k, x.Slice(0, 10), gp.Data{X: x, Y: y}, o))
	near1(t, "information gain", all.InformationGain(), one.InformationGain(), 1e-11)
	near1(t, "leverage", all.Leverage(), 0, 0)
	near(t, "point variances", all.PointVariances(), one.PointVariances(), 1e-11)
	near(t, "counts", all.Counts(), one.Counts(), 0)
}

func TestSparseSlope(t *testing.T) {
	eachKernel(t, 3, func(t *testing.T, k kernel.Kernel, rng *rand.Rand) {
		x, y := uniform(rng, 60, 3), normals(rng, 60)
		for _, a := range []gp.Approximation{gp.DTC, gp.FITC, gp.SoR} {
			o := gp.SparseOptions{NoiseVariance: 0.1, Approximation: a, Mean: 1}
			s := must(gp.NewSparse(k, x.Slice(0, 10), gp.Data{X: x, Y: y}, o))
			if err := s.ObserveVariance(uniform(rng, 3, 3)); err != nil {
				t.Fatal(err)
			}
			checkSlope(t, s, uniform(rng, 1, 3))
		}
	})
}

func TestWorkersChangeNothing(t *testing.T) {
	rng := seeded(t)
	x, y, q := uniform(rng, 200, 3), normals(rng, 200), uniform(rng, 3000, 3)
	k := kernels(3)["gaussian"]
	var means, variances [][]float64
	for _, w := range []int{1, 4} {
		g := must(gp.NewExact(k, gp.Data{X: x, Y: y}, gp.Options{NoiseVariance: 0.1, Workers: w}))
		s := must(gp.NewSparse(k, x.Slice(0, 20), gp.Data{}, gp.SparseOptions{NoiseVariance: 0.1, Workers: w}))
		if err := s.SetArms(q, false); err != nil {
			t.Fatal(err)
		}
		for i := range 50 {
			if err := s.Observe(gp.Data{X: x.Slice(i, i+1), Y: y[i : i+1]}); err != nil {
				t.Fatal(err)
			}
		}
		m, v := predict(t, g, q)
		ms, vs := predict(t, s, q)
		e := g.Evidence()
		means = append(means, append(append(append(m, ms...), s.ArmMeans()...), e.Kernel...))
		variances = append(variances, append(append(v, vs...), s.ArmVariances()...))
	}
	near(t, "means", means[1], means[0], 0)
	near(t, "variances", variances[1], variances[0], 0)
}

// An observation of a pending point equals an observation without the pull, and
// cancelling a pull leaves no trace.
func TestPendingComesAndGoes(t *testing.T) {
	rng := seeded(t)
	x, y, q := uniform(rng, 12, 2), normals(rng, 12), uniform(rng, 10, 2)
	o := gp.SparseOptions{NoiseVariance: 0.1}
	k := kernels(2)["matern52"]
	want := must(gp.NewSparse(k, x, gp.Data{X: x, Y: y}, o))
	s := must(gp.NewSparse(k, x, gp.Data{}, o))
	if err := s.ObserveVariance(x); err != nil {
		t.Fatal(err)
	}
	once := s.InformationGain()
	if err := s.ObserveVariance(x); err != nil {
		t.Fatal(err)
	}
	if twice := s.InformationGain(); twice <= once {
		t.Errorf("information gain %g after %g", twice, once)
	}
	if err := s.Cancel(x); err != nil {
		t.Fatal(err)
	}
	near1(t, "information gain without the cancelled pulls", s.InformationGain(), once, 1e-12)
	if err := s.Observe(gp.Data{X: x, Y: y}); err != nil {
		t.Fatal(err)
	}
	if s.Pending() != 0 {
		t.Fatalf("%d still pending", s.Pending())
	}
	m1, v1 := predict(t, want, q)
	m2, v2 := predict(t, s, q)
	near(t, "mean", m2, m1, 1e-11)
	near(t, "variance", v2, v1, 1e-11)
}

// A posterior made again from its observations is the same to the bit. Replaying a log
// after a restart relies on that.
func TestSparseRestartIsBitIdentical(t *testing.T) {
	rng := seeded(t)
	arms, k := uniform(rng, 60, 3), kernels(3)["matern52"]
	h := &history{arms: arms, pending: map[int]int{}}
	o := gp.SparseOptions{NoiseVariance: 0.05}
	live := must(gp.NewSparse(k, arms.Slice(0, 4), gp.Data{}, o))
	if err := live.SetArms(arms, false); err != nil {
		t.Fatal(err)
	}
	for range 150 {
		h.step(t, live, rng)
	}
	for a, n := range h.pending { // so that order does not matter
		for range n {
			if err := live.CancelArm(a); err != nil {
				t.Fatal(err)
			}
		}
	}
	dict := arms.Slice(5, 20)
	if err := live.Resparsify(dict); err != nil {
		t.Fatal(err)
	}
	again := must(gp.NewSparse(k, dict, h.data(), o))
	if err := again.SetArms(arms, false); err != nil {
		t.Fatal(err)
	}
	gain := live.InformationGain() - again.InformationGain()
	for range 100 {
		near(t, "means", again.ArmMeans(), live.ArmMeans(), 0)
		near(t, "variances", again.ArmVariances(), live.ArmVariances(), 0)
		near1(t, "information gain since", again.InformationGain()+gain, live.InformationGain(), 1e-13)
		near1(t, "leverage", again.Leverage(), live.Leverage(), 0)
		a, y := rng.IntN(60), rng.NormFloat64()
		for _, s := range []*gp.Sparse{live, again} {
			if err := s.PullArm(a); err != nil {
				t.Fatal(err)
			}
			if a%3 > 0 {
				if err := s.ObserveArm(a, y); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestAnchorComesBySelf(t *testing.T) {
	rng := seeded(t)
	arms := uniform(rng, 30, 2)
	s := must(gp.NewSparse(kernels(2)["matern52"], arms.Slice(0, 10), gp.Data{}, gp.SparseOptions{NoiseVariance: 1e-6}))
	s.SetAnchorEvery(9)
	if err := s.SetArms(arms, false); err != nil {
		t.Fatal(err)
	}
	for i := range 45 {
		if err := s.ObserveArm(rng.IntN(30), rng.NormFloat64()); err != nil {
			t.Fatal(err)
		}
		if i%9 < 8 {
			continue
		}
		means := append([]float64(nil), s.ArmMeans()...)
		variances := append([]float64(nil), s.ArmVariances()...)
		s.Anchor()
		near(t, "means", s.ArmMeans(), means, 0)
		near(t, "variances", s.ArmVariances(), variances, 0)
	}
}

// σ̃² is never below the part outside the span of the inducing points, to the bit.
func TestVarianceNeverStarves(t *testing.T) {
	rng := seeded(t)
	arms := uniform(rng, 50, 2)
	s := must(gp.NewSparse(kernels(2)["matern52"], arms.Slice(0, 6), gp.Data{}, gp.SparseOptions{NoiseVariance: 1e-9}))
	if err := s.SetArms(arms, false); err != nil {
		t.Fatal(err)
	}
	_, residual, err := s.Embed(arms)
	if err != nil {
		t.Fatal(err)
	}
	for range 300 {
		if err := s.PullArm(rng.IntN(50)); err != nil {
			t.Fatal(err)
		}
		for a, v := range s.ArmVariances() {
			if v < residual[a] || v < 2.5e-12 {
				t.Fatalf("variance %g of arm %d, residual %g", v, a, residual[a])
			}
		}
	}
}
