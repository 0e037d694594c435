package gp_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// replicated is a sparse model of targets by dense matrices of their number. Targets of
// one input share one residual if fitc is set for the input's row.
//
//	cov(y_i, y_j) = q_ij + [x_i = x_j, fitc_i]·res_i + [i = j]·noise_i.
func replicated(k kernel.Kernel, dict kernel.Rows, x *kernel.Points[float64], y, noise []float64, fitc func(i int) bool, q kernel.Rows) model {
	a := nystrom(k, dict, x, x)
	b := mat.DenseCopyOf(a)
	for i := range y {
		for j := range y {
			if fitc(i) && slices.Equal(x.Row(i), x.Row(j)) {
				b.Set(i, j, b.At(i, j)+k.Diag(x, i)-a.At(i, i))
			}
		}
		b.Set(i, i, b.At(i, i)+noise[i])
	}
	return condition(gram(k, q, q), nystrom(k, dict, q, x), b, y)
}

// TestResidualsCountOncePerInput compares means and variances with the dense
// computation where inputs repeat. Some targets have noise of their own, some are means
// of several (negative own noise), and some are coarse. They are observed at once, one
// by one, and in a posterior that grows.
func TestResidualsCountOncePerInput(t *testing.T) {
	eachKernel(t, 2, func(t *testing.T, k kernel.Kernel, rng *rand.Rand) {
		const noise, n = 0.05, 60
		pool, q := uniform(rng, 20, 2), uniform(rng, 15, 2)
		dict := pool.Select(rng.Perm(20)[:6])
		idx := make([]int, n)
		for i := range idx {
			idx[i] = rng.IntN(20)
		}
		x := pool.Select(idx).(*kernel.Points[float64])
		data := gp.Data{X: x, Y: normals(rng, n), Noise: make([]float64, n), Coarse: make([]bool, n)}
		total := make([]float64, n)
		for i := range total {
			switch rng.IntN(4) {
			case 0:
				data.Noise[i] = 0.3 * rng.Float64()
			case 1:
				data.Noise[i] = noise/3 - noise // a mean of three
			}
			data.Coarse[i] = idx[i] < 5
			total[i] = noise + data.Noise[i]
		}
		for _, c := range []struct {
			approximation gp.Approximation
			fitc          func(i int) bool
		}{
			{gp.DTC, func(i int) bool { return idx[i] < 5 }},
			{gp.FITC, func(int) bool { return true }},
		} {
			want := replicated(k, dict, x, data.Y, total, c.fitc, q)
			o := gp.SparseOptions{NoiseVariance: noise, Approximation: c.approximation}
			one := must(gp.NewSparse(k, dict, gp.Data{}, o))
			for i := range n {
				d := gp.Data{X: x.Slice(i, i+1), Y: data.Y[i : i+1], Noise: data.Noise[i : i+1], Coarse: data.Coarse[i : i+1]}
				if err := one.Observe(d); err != nil {
					t.Fatal(err)
				}
			}
			o.Growth = gp.Growth{Room: 7, Window: 1 + rng.IntN(100), Significance: 1e9} // it takes no further point
			held := o
			held.Growth.Significance = 0
			for name, s := range map[string]*gp.Sparse{
				"at once":    must(gp.NewSparse(k, dict, data, gp.SparseOptions{NoiseVariance: noise, Approximation: c.approximation})),
				"one by one": one, "growing": must(gp.NewSparse(k, dict, data, held)),
			} {
				if s.Rank() != 6 {
					t.Fatalf("%s: %d inducing points", name, s.Rank())
				}
				mean, variance := predict(t, s, q)
				near(t, name+" mean", mean, want.mean, 1e-8)
				near(t, name+" variance", variance, want.variance, 1e-8)
			}
		}
	})
}

// TestReplicatesAtABindingCap has 12 inputs of 20 replicates each, and 16 inducing points at
// other places. If a residual counted once a replicate, the smallest variance would be 0.21
// of the exact one, and means up to 4.4 of their standard deviations off.
func TestReplicatesAtABindingCap(t *testing.T) {
	const noise, draws = 0.05, 40
	ratio, off := math.Inf(1), 0.0
	for draw := range uint64(draws) {
		rng := rand.New(rand.NewPCG(draw, 7))
		k := must(kernel.NewMatern52(0.4))
		pool, dict := uniform(rng, 12, 3), uniform(rng, 16, 3)
		idx := make([]int, 240)
		for i := range idx {
			idx[i] = i % 12
		}
		x := pool.Select(idx)
		// The targets come from the process itself.
		f := sample(rng, k, pool)
		y := make([]float64, len(idx))
		for i := range y {
			y[i] = f[idx[i]] + math.Sqrt(noise)*rng.NormFloat64()
		}
		exact := must(gp.NewExact(k, gp.Data{X: x, Y: y}, gp.Options{NoiseVariance: noise}))
		s := must(gp.NewSparse(k, dict, gp.Data{X: x, Y: y}, gp.SparseOptions{
			NoiseVariance: noise, Approximation: gp.FITC, Growth: gp.Growth{Room: 16},
		}))
		q := uniform(rng, 60, 3)
		mean, variance := predict(t, s, q)
		wantMean, wantVariance := predict(t, exact, q)
		for i, v := range variance {
			ratio = min(ratio, v/wantVariance[i])
			off = max(off, math.Abs(mean[i]-wantMean[i])/math.Sqrt(v))
		}
	}
	if ratio < 0.6 || off > 3 {
		t.Errorf("least σ̃²/σ² %.3f, want ≥ 0.6; worst error of a mean %.2f σ̃, want ≤ 3", ratio, off)
	}
}

// grower makes a growing posterior without data.
func grower(k kernel.Kernel, d, room int) *gp.Sparse {
	return must(gp.NewSparse(k, kernel.NewPoints[float64](0, d, nil), gp.Data{}, gp.SparseOptions{
		NoiseVariance: 0.02, Growth: gp.Growth{Room: room, Window: 1024},
	}))
}

// TestGrowingIsExactWhileThereIsRoom observes, forks and pulls at random, with repeated
// inputs, and compares with the exact posterior.
func TestGrowingIsExactWhileThereIsRoom(t *testing.T) {
	eachKernel(t, 2, func(t *testing.T, k kernel.Kernel, rng *rand.Rand) {
		pool, q := uniform(rng, 25, 2), uniform(rng, 20, 2)
		s := grower(k, 2, 60)
		var idx []int
		var y []float64
		for range 50 {
			i, v := rng.IntN(25), rng.NormFloat64()
			if err := s.Observe(gp.Data{X: pool.Slice(i, i+1), Y: []float64{v}}); err != nil {
				t.Fatal(err)
			}
			idx, y = append(idx, i), append(y, v)
		}
		exact := must(gp.NewExact(k, gp.Data{X: pool.Select(idx), Y: y}, gp.Options{NoiseVariance: 0.02}))
		want, wantV := predict(t, exact, q)
		same := func(what string) {
			t.Helper()
			mean, variance := predict(t, s, q)
			near(t, what+" mean", mean, want, 1e-8)
			near(t, what+" variance", variance, wantV, 1e-8)
		}
		same("grown")
		near1(t, "information gain", s.InformationGain(), exact.LogDet(), 1e-8)
		dimension := 0.0
		_, all := predict(t, exact, pool.Select(idx))
		for _, v := range all {
			dimension += v / 0.02
		}
		near1(t, "effective dimension", s.EffectiveDimension(), dimension, 1e-8)
		// A fork observes and pulls, and its origin does not change.
		f, extra := s.Fork(), rng.Perm(25)[:6]
		more := gp.Data{X: pool.Select(extra[:3]), Y: normals(rng, 3)}
		if err := f.Observe(more); err != nil {
			t.Fatal(err)
		}
		ahead := func(points []int) predictor {
			targets := append(slices.Concat(y, more.Y), make([]float64, len(points)-3)...)
			return must(gp.NewExact(k, gp.Data{X: pool.Select(slices.Concat(idx, points)), Y: targets}, gp.Options{NoiseVariance: 0.02}))
		}
		forkMean, _ := predict(t, ahead(extra[:3]), q)
		pulls := pool.Select(extra[2:])
		if err := f.ObserveVariance(pulls); err != nil {
			t.Fatal(err)
		}
		_, forkVariance := predict(t, ahead(slices.Concat(extra[:3], extra[2:])), q)
		mean, variance := predict(t, f, q)
		near(t, "fork's mean", mean, forkMean, 1e-8)
		near(t, "fork's variance", variance, forkVariance, 1e-8)
		if err := f.Observe(more); !errors.Is(err, gp.ErrFrozen) {
			t.Errorf("an observation after a pull: %v", err)
		}
		same("origin")
		if err := s.Anchor(); err != nil {
			t.Fatal(err)
		}
		same("anchored")
	})
}

// TestGrowingBeyondItsRoom compares observations one by one, beyond the room and over
// replicates, with the same observations computed from scratch on the same inducing
// points.
func TestGrowingBeyondItsRoom(t *testing.T) {
	rng := seeded(t)
	k := kernels(3)["matern52"]
	pool, q := uniform(rng, 80, 3), uniform(rng, 40, 3)
	for _, a := range []gp.Approximation{gp.DTC, gp.FITC} {
		o := gp.SparseOptions{NoiseVariance: 0.05, Approximation: a, Growth: gp.Growth{Room: 30}}
		dict := pool.Slice(0, 30)
		s := must(gp.NewSparse(k, dict, gp.Data{}, o))
		var all gp.Data
		var idx []int
		for range 150 {
			i := rng.IntN(80)
			d := gp.Data{X: pool.Slice(i, i+1), Y: normals(rng, 1)}
			if err := s.Observe(d); err != nil {
				t.Fatal(err)
			}
			idx, all.Y = append(idx, i), append(all.Y, d.Y...)
		}
		all.X = pool.Select(idx)
		if s.Rank() != 30 {
			t.Fatalf("rank %d, of room for 30", s.Rank())
		}
		mean, variance := predict(t, s, q)
		total := slices.Repeat([]float64{0.05}, len(idx))
		want := replicated(k, dict, all.X.(*kernel.Points[float64]), all.Y, total, func(int) bool { return true }, q)
		near(t, "mean", mean, want.mean, 1e-8)
		near(t, "variance", variance, want.variance, 1e-8)
	}
}

// TestWindow compares with a dense computation. Points older than the window are in V
// with their old coordinates, and with 0 in those of later inducing points.
func TestWindow(t *testing.T) {
	rng := seeded(t)
	const noise, u, before, after = 0.05, 60, 10, 15
	k := must(kernel.NewMatern52(0.5))
	x, y, q := uniform(rng, u, 2), normals(rng, u), uniform(rng, 30, 2)
	for window, known := range map[int]int{0: u, u: u, 35: 35, 30: 30, 29: 0} {
		o := gp.SparseOptions{NoiseVariance: noise, Growth: gp.Growth{Room: 40, Window: window}}
		s := must(gp.NewSparse(k, x.Slice(0, before), gp.Data{X: x, Y: y}, o))
		for i := range after - before {
			added, err := s.AddInducing(x.Slice(50+i, 51+i))
			if err != nil || !added {
				t.Fatal(added, err)
			}
		}
		z, _, err := s.Embed(x)
		if err != nil {
			t.Fatal(err)
		}
		v, b := mat.NewDense(after, after, nil), mat.NewDense(after, 1, nil)
		for j := range after {
			v.Set(j, j, 1)
		}
		for i := range u {
			row := slices.Clone(z[i*after : (i+1)*after])
			if i < u-known {
				clear(row[before:])
			}
			for j, a := range row {
				b.Set(j, 0, b.At(j, 0)+a*y[i]/noise)
				for l, c := range row {
					v.Set(j, l, v.At(j, l)+a*c/noise)
				}
			}
		}
		zq, res, err := s.Embed(q)
		if err != nil {
			t.Fatal(err)
		}
		var w, solved, quad mat.Dense
		if err := w.Solve(v, b); err != nil {
			t.Fatal(err)
		}
		mean, variance := predict(t, s, q)
		for i := range res {
			row := mat.NewDense(after, 1, slices.Clone(zq[i*after:(i+1)*after]))
			if err := solved.Solve(v, row); err != nil {
				t.Fatal(err)
			}
			quad.Mul(row.T(), &solved)
			near1(t, "variance", variance[i], res[i]+quad.At(0, 0), 1e-9)
			quad.Mul(row.T(), &w)
			near1(t, "mean", mean[i], quad.At(0, 0), 1e-8)
		}
	}
}

// TestGrowthDegenerate takes a room of 1, constant targets, equal rows, a kernel of
// rank 1, and almost no noise.
func TestGrowthDegenerate(t *testing.T) {
	rng := seeded(t)
	x := uniform(rng, 30, 2)
	same := x.Select(make([]int, 30))
	// The first two rows span the plane well. Where they are nearly parallel, the
	// residual of a third is rounding over a small number and may pass for a rank.
	apart := kernel.NewPoints(30, 2, append([]float64{1, 0.1, 0.1, 1}, uniform(rng, 28, 2).Data()...))
	linear := must(kernel.NewLinear(1))
	for name, c := range map[string]struct {
		k    kernel.Kernel
		x    kernel.Rows
		room int
		rank int
	}{
		"room of 1":  {must(kernel.NewGaussian(0.3)), x, 1, 1},
		"equal rows": {must(kernel.NewGaussian(0.3)), same, 10, 1},
		"rank 2":     {linear, apart, 10, 2},
	} {
		for _, noise := range []float64{1, 1e-6, 1e-10} {
			s := must(gp.NewSparse(c.k, x.Slice(0, 0), gp.Data{}, gp.SparseOptions{NoiseVariance: noise, Growth: gp.Growth{Room: c.room, Window: 8}}))
			for i := range 30 {
				if err := s.Observe(gp.Data{X: c.x.Slice(i, i+1), Y: []float64{1}}); err != nil {
					t.Fatal(name, err)
				}
			}
			if s.Rank() != c.rank {
				t.Errorf("%s, noise %g: rank %d, want %d", name, noise, s.Rank(), c.rank)
			}
			mean, variance := predict(t, s, x)
			for i, m := range mean {
				if !(variance[i] > 0) || !(math.Abs(m) < 100) {
					t.Fatalf("%s, noise %g: mean %g, variance %g", name, noise, m, variance[i])
				}
			}
		}
	}
	var bad *gp.ValueError
	for _, g := range []gp.Growth{{Room: -1}, {Room: 4, Window: -1}, {Room: 4, Significance: math.NaN()}} {
		if _, err := gp.NewSparse(linear, x.Slice(0, 0), gp.Data{}, gp.SparseOptions{NoiseVariance: 1, Growth: g}); !errors.As(err, &bad) {
			t.Errorf("%+v: %v", g, err)
		}
	}
	s := grower(linear, 2, 4)
	if err := s.SetArms(x, false); err == nil {
		t.Error("arms in a posterior that grows")
	}
}

// TestForksLeaveTheirOrigin also takes a posterior that does not grow and has pending
// pulls.
func TestForksLeaveTheirOrigin(t *testing.T) {
	rng := seeded(t)
	x, q := uniform(rng, 20, 2), uniform(rng, 10, 2)
	s := must(gp.NewSparse(kernels(2)["matern52"], x.Slice(0, 8), gp.Data{X: x, Y: normals(rng, 20)}, gp.SparseOptions{NoiseVariance: 0.1}))
	for _, pending := range []int{0, 3} {
		if err := s.ObserveVariance(x.Slice(0, pending)); err != nil {
			t.Fatal(err)
		}
		mean, variance := predict(t, s, q)
		f := s.Fork()
		if err := f.ObserveVariance(x.Slice(5, 9)); err != nil {
			t.Fatal(err)
		}
		if err := f.Observe(gp.Data{X: x.Slice(2, 6), Y: normals(rng, 4)}); err != nil {
			t.Fatal(err)
		}
		if m, v := predict(t, f, q); slices.Equal(m, mean) || slices.Equal(v, variance) {
			t.Error("the fork has not changed")
		}
		m, v := predict(t, s, q)
		near(t, "mean", m, mean, 0)
		near(t, "variance", v, variance, 0)
	}
}

// TestResidualsThatCountLater observes an input that is nearly in the span often before
// the room is full. After that its residual counts, and its part in V and b stays one
// point.
func TestResidualsThatCountLater(t *testing.T) {
	k := must(kernel.NewGaussian(0.3))
	o := gp.SparseOptions{NoiseVariance: 0.1, Growth: gp.Growth{Room: 2, Significance: 1e-3}}
	s := must(gp.NewSparse(k, points(1, 0.5), gp.Data{}, o))
	near1 := func(want float64) {
		t.Helper()
		if mean, _ := predict(t, s, points(1, 0.5)); !(math.Abs(mean[0]-want) < 0.02) {
			t.Errorf("mean %v, want %v", mean[0], want)
		}
	}
	for range 1000 {
		if err := s.Observe(gp.Data{X: points(1, 0.502), Y: []float64{1}}); err != nil {
			t.Fatal(err)
		}
	}
	near1(1)
	for _, u := range []float64{5, 0.502} { // the first fills the room
		if err := s.Observe(gp.Data{X: points(1, u), Y: []float64{1}}); err != nil {
			t.Fatal(err)
		}
	}
	if s.Rank() != 2 {
		t.Fatalf("rank %d", s.Rank())
	}
	near1(1)
}

// TestRefusedGrowth checks that a refused call changes nothing in a growing posterior.
func TestRefusedGrowth(t *testing.T) {
	rng := seeded(t)
	s, q := grower(kernels(2)["matern52"], 2, 10), uniform(rng, 5, 2)
	good := gp.Data{X: uniform(rng, 3, 2), Y: normals(rng, 3)}
	if err := s.Observe(good); err != nil {
		t.Fatal(err)
	}
	if err := s.ObserveVariance(uniform(rng, 0, 2)); err != nil {
		t.Fatal(err)
	}
	mean, variance := predict(t, s, q)
	bad := gp.Data{X: points(2, 0.1, 0.2, math.NaN(), 0), Y: []float64{1, 2}}
	if s.Observe(bad) == nil || s.ObserveVariance(bad.X) == nil {
		t.Fatal("taken")
	}
	m, v := predict(t, s, q)
	near(t, "mean", m, mean, 0)
	near(t, "variance", v, variance, 0)
	if err := s.Observe(good); err != nil { // it is not frozen
		t.Error(err)
	}
}

// TestProbeEqualsPrediction compares values with predictions, and gradients with
// differences.
func TestProbeEqualsPrediction(t *testing.T) {
	eachKernel(t, 2, func(t *testing.T, k kernel.Kernel, rng *rand.Rand) {
		x := uniform(rng, 30, 2)
		for _, a := range []gp.Approximation{gp.DTC, gp.SoR, gp.FITC} {
			s := must(gp.NewSparse(k, x.Slice(0, 9), gp.Data{X: x, Y: normals(rng, 30)}, gp.SparseOptions{
				NoiseVariance: 0.1, Approximation: a, Mean: 0.2,
			}))
			p := s.Probe()
			for i := range 10 {
				u := uniform(rng, 1, 2).Row(0)
				mean, sd, err := p.Value(u)
				if err != nil {
					t.Fatal(err)
				}
				dMean, dSD := p.Gradient()
				dMean, dSD = slices.Clone(dMean), slices.Clone(dSD)
				want, variance := predict(t, s, uniformAround(u, i))
				near1(t, "mean", mean, want[0], 1e-10)
				near1(t, "sd", sd, math.Sqrt(variance[0]), 1e-10)
				const h = 1e-6
				for c := range u {
					up, down := slices.Clone(u), slices.Clone(u)
					up[c], down[c] = u[c]+h, u[c]-h
					m1, s1, _ := p.Value(up)
					m0, s0, _ := p.Value(down)
					near1(t, "∂mean", dMean[c], (m1-m0)/(2*h), 1e-5)
					near1(t, "∂sd", dSD[c], (s1-s0)/(2*h), 1e-4)
				}
			}
		}
	})
}

// uniformAround puts u among other rows, so that prediction takes another code path for
// it.
func uniformAround(u []float64, n int) *kernel.Points[float64] {
	rows := slices.Clone(u)
	for range n {
		rows = append(rows, u...)
	}
	return kernel.NewPoints(n+1, len(u), rows)
}
