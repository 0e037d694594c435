package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// oracle is CMA-ES by the equations of Hansen's tutorial with matrices of gonum, which share no
// code with a strategy. Its root of C is the Cholesky factor.
type oracle struct {
	mean, path, stepPath *mat.VecDense
	cov                  *mat.SymDense
	step                 float64
	generations          int
}

func (o *oracle) update(samples []Evaluation) {
	d := o.mean.Len()
	n, lambda := float64(d), len(samples)
	var w []float64
	sum, squares := 0.0, 0.0
	for i := 1; i <= lambda/2; i++ {
		w = append(w, math.Log((float64(lambda)+1)/2/float64(i)))
		sum += w[i-1]
	}
	for i := range w {
		w[i] /= sum
		squares += w[i] * w[i]
	}
	mu := 1 / squares
	sorted := slices.Clone(samples)
	for i := range sorted { // insertion
		for k := i; k > 0 && sorted[k].Y > sorted[k-1].Y; k-- {
			sorted[k], sorted[k-1] = sorted[k-1], sorted[k]
		}
	}
	moved, rank := mat.NewVecDense(d, nil), mat.NewDense(d, d, nil)
	for i, a := range w {
		var y mat.VecDense
		y.SubVec(mat.NewVecDense(d, slices.Clone(sorted[i].X)), o.mean)
		y.ScaleVec(1/o.step, &y)
		moved.AddScaledVec(moved, a, &y)
		var outer mat.Dense
		outer.Outer(a, &y, &y)
		rank.Add(rank, &outer)
	}
	var chol mat.Cholesky
	if !chol.Factorize(o.cov) {
		panic("not positive definite")
	}
	var root mat.TriDense
	chol.LTo(&root)
	var white mat.VecDense
	if err := white.SolveVec(&root, moved); err != nil {
		panic(err)
	}
	cs := (mu + 2) / (n + mu + 5)
	ds := 1 + 2*math.Max(0, math.Sqrt((mu-1)/(n+1))-1) + cs
	cc := (4 + mu/n) / (n + 4 + 2*mu/n)
	c1 := 2 / (math.Pow(n+1.3, 2) + mu)
	cmu := math.Min(1-c1, 2*(mu-2+1/mu)/(math.Pow(n+2, 2)+mu))
	chi := math.Sqrt(n) * (1 - 1/(4*n) + 1/(21*n*n))
	o.generations++
	o.mean.AddScaledVec(o.mean, o.step, moved)
	o.stepPath.ScaleVec(1-cs, o.stepPath)
	o.stepPath.AddScaledVec(o.stepPath, math.Sqrt(cs*(2-cs)*mu), &white)
	norm := mat.Norm(o.stepPath, 2)
	h := 0.0
	if norm/math.Sqrt(1-math.Pow(1-cs, 2*float64(o.generations))) < (1.4+2/(n+1))*chi {
		h = 1
	}
	o.path.ScaleVec(1-cc, o.path)
	o.path.AddScaledVec(o.path, h*math.Sqrt(cc*(2-cc)*mu), moved)
	var one mat.Dense
	one.Outer(c1, o.path, o.path)
	for i := range d {
		for j := i; j < d; j++ {
			o.cov.SetSym(i, j, (1-c1-cmu+(1-h)*c1*cc*(2-cc))*o.cov.At(i, j)+one.At(i, j)+cmu*rank.At(i, j))
		}
	}
	o.step *= math.Exp(math.Min(1, cs/ds*(norm/chi-1)))
}

// A generation moves the distribution as the equations say, whatever the values are.
func TestStrategyFollowsTheTutorial(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := 2 + rng.IntN(16-2+1)
		start := make([]float64, d)
		for i := range start {
			start[i] = rng.Float64()
		}
		s := NewCMAES(start, firstSigma)
		eye := mat.NewSymDense(d, nil)
		for i := range d {
			eye.SetSym(i, i, 1)
		}
		o := &oracle{mean: mat.NewVecDense(d, slices.Clone(start)), path: mat.NewVecDense(d, nil), stepPath: mat.NewVecDense(d, nil), cov: eye, step: firstSigma}
		for range 30 {
			var all []Evaluation
			for range s.population() {
				x := s.Sample(rng)
				y := -math.Abs(x[0]-0.3) - 10*math.Pow(x[d-1]-x[0], 2) + 0.1*rng.NormFloat64()
				if rng.IntN(8) == 0 {
					y = math.Inf(-1) // a failure
				}
				all = append(all, Evaluation{x, y})
				s.tell(x, y, 0, 0)
			}
			o.update(all)
			for i := range d {
				agree(t, seed, s.mean[i], o.mean.AtVec(i))
				agree(t, seed, s.path[i], o.path.AtVec(i))
				agree(t, seed, s.stepPath[i], o.stepPath.AtVec(i))
				for j := range d {
					agree(t, seed, s.cov[i][j], o.cov.At(i, j))
				}
			}
			agree(t, seed, s.step, o.step)
		}
	}
}

func agree(t *testing.T, seed uint64, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= 1e-8*(1+math.Abs(want))) {
		t.Fatalf("seed %d: %v, by the equations %v", seed, got, want)
	}
}

// A run converges on a turned ellipsoid, and says that it is over.
func TestStrategyConverges(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 2))
		d := 2 + rng.IntN(7)
		turn, best := mat.NewDense(d, d, nil), make([]float64, d)
		for i := range d {
			best[i] = 0.2 + 0.6*rng.Float64()
			for j := range d {
				turn.Set(i, j, rng.NormFloat64())
			}
		}
		var qr mat.QR
		qr.Factorize(turn)
		qr.QTo(turn)
		value := func(x []float64) float64 {
			sum := 0.0
			for i := range d {
				z := 0.0
				for j := range d {
					z += turn.At(i, j) * (x[j] - best[j])
				}
				sum += math.Pow(1e4, float64(i)/float64(d-1)) * z * z
			}
			return -sum
		}
		s, n := NewCMAES(slices.Repeat([]float64{0.5}, d), firstSigma), 0
		for ; !s.over(math.Inf(-1)) && n < 3000*d; n++ {
			x := s.Sample(rng)
			s.tell(x, value(x), 0, 0)
		}
		if !s.over(math.Inf(-1)) || s.top < -1e-6 {
			t.Errorf("seed %d, d = %d: after %d samples the best is %g below the optimum, over %t", seed, d, n, -s.top, s.over(math.Inf(-1)))
		}
	}
}

// A run ends where all values are equal, and where its distribution has no volume left.
func TestStrategyEnds(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	s := NewCMAES([]float64{0.5, 0.5}, firstSigma)
	for range s.population() {
		s.tell(s.Sample(rng), 1, 0, 0)
	}
	if !s.over(math.Inf(-1)) {
		t.Error("it goes on where all values are equal")
	}
	s = NewCMAES([]float64{0.5, 0.5}, firstSigma)
	for i := range 40 * s.population() {
		s.tell([]float64{0.25, 0.25}, float64(i), 0, 0) // one point
	}
	if !s.over(math.Inf(1)) {
		t.Error("it goes on without a volume")
	}
	for _, v := range s.Sample(rng) {
		if !(v >= 0 && v <= 1) {
			t.Errorf("a sample at %v", v)
		}
	}
}

// However many workers there are, each run learns from its own samples. So each run converges in a basin.
// The first one begins at the best evaluation, and others do not begin at any.
func TestEvolutionWithWorkers(t *testing.T) {
	const d = 3
	low, high := []float64{0.2, 0.2, 0.2}, []float64{0.8, 0.8, 0.8}
	for _, workers := range []int{1, 2, 8} {
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 5))
			v, end := NewEvolution(d, seed), int64(0)
			var heard [][]float64
			hear := func(x []float64, evolved bool, seen int64) {
				end++
				heard = append(heard, x)
				v.Tell(Evaluation{x, -min(apart(x, low), 0.05+apart(x, high))}, evolved, seen, end) // two bowls
			}
			if v.Distribution() != nil {
				t.Fatal("there is a distribution without an evaluation")
			}
			for range 20 {
				hear([]float64{rng.Float64(), rng.Float64(), rng.Float64()}, false, 0)
			}
			if got := v.Distribution().mean; !slices.Equal(got, v.best.X) {
				t.Errorf("the first run begins at %v, the best is at %v", got, v.best.X)
			}
			type sample struct {
				x    []float64
				seen int64
			}
			var running []sample
			for runs := 0; v.runs < 6; {
				for len(running) < workers {
					running = append(running, sample{v.Distribution().Sample(rng), end})
				}
				before, i := v.run, rng.IntN(len(running))
				hear(running[i].x, true, running[i].seen)
				running = slices.Delete(running, i, i+1)
				if v.runs == runs {
					continue
				}
				runs = v.runs
				if at := before.mean; min(apart(at, low), apart(at, high)) > 0.05 {
					t.Errorf("%d workers, seed %d: run %d ends at %v", workers, seed, runs, at)
				}
				begins := v.Distribution().mean
				if slices.ContainsFunc(heard, func(x []float64) bool { return slices.Equal(x, begins) }) {
					t.Errorf("%d workers, seed %d: a run begins at %v, which is not random", workers, seed, begins)
				}
				heard = append(heard, begins)
			}
		}
	}
}

// A sample of an earlier generation, far away by now, does not blow up the distribution.
func TestStrategyBoundsOldSamples(t *testing.T) {
	for _, d := range []int{2, 4, 8} {
		for seed := range uint64(5) {
			rng := rand.New(rand.NewPCG(seed, 6))
			s, old, end := NewCMAES(slices.Repeat([]float64{0.5}, d), firstSigma), []float64(nil), int64(0)
			for end < 5000 && s.width() > 1e-4 {
				x := s.Sample(rng)
				if old == nil {
					old = x
				}
				end++
				s.tell(x, -apart(x, slices.Repeat([]float64{0.5}, d)), end, end)
			}
			before := s.width()
			for range s.population() {
				s.tell(old, 1, 0, end)
				for range s.population() - 1 {
					x := s.Sample(rng)
					s.tell(x, -apart(x, slices.Repeat([]float64{0.5}, d)), end, end)
				}
				if now := s.width(); before > 1e-4 || now > 1e3*before {
					t.Fatalf("d = %d, seed %d: the width was %g and is %g", d, seed, before, now)
				}
			}
		}
	}
}

// A run ends where noise hides what is left to gain.
func TestStrategyEndsInNoise(t *testing.T) {
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 7))
		s, n := NewCMAES(slices.Repeat([]float64{0.4}, 4), firstSigma), 0
		for ; n < 4000 && !s.over(math.Inf(-1)); n++ {
			x := s.Sample(rng)
			s.tell(x, -apart(x, slices.Repeat([]float64{0.5}, 4))+0.05*rng.NormFloat64(), 0, 0)
		}
		if n == 4000 {
			t.Errorf("seed %d: it goes on", seed)
		}
	}
}

// apart returns the root mean square distance of two points.
func apart(x, y []float64) float64 {
	sum := 0.0
	for c, v := range x {
		sum += (v - y[c]) * (v - y[c])
	}
	return math.Sqrt(sum / float64(len(x)))
}
