package learners_test

import (
	"errors"
	"io"
	"math"
	"math/bits"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
)

func TestAveragePredicts(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	a := models(t, rng)["average"]
	x := kernel.FromRows(a.x)
	got := predict(t, a.m, x)
	average := a.m.(*learners.Average)
	want := make([]float64, len(got))
	for i, m := range average.Members() {
		for j, f := range predict(t, m, x) {
			want[j] += average.Weights()[i] * f
		}
	}
	for j, f := range got {
		if math.Abs(f-want[j]) > 1e-14*(1+math.Abs(want[j])) {
			t.Errorf("output %d is %v, want %v", j, f, want[j])
		}
	}
}

func TestAverageRefuses(t *testing.T) {
	linear := func(d, c int) learners.Model {
		m, err := learners.NewLinear(nil, d, make([]float64, d*c), c)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	logistic := linear(2, 1).(*learners.Linear).WithLink(learners.Logistic)
	var shape *kernel.ShapeError
	var number *kernel.NonFiniteError
	var data *learners.DataError
	for name, c := range map[string]struct {
		members []learners.Model
		weights []float64
		want    any
		text    string
	}{
		"none":          {nil, nil, &shape, "there are 0"},
		"weights":       {[]learners.Model{linear(2, 1)}, []float64{0.5, 0.5}, &shape, "there are 1"},
		"inputs":        {[]learners.Model{linear(2, 1), linear(3, 1)}, []float64{0.5, 0.5}, &shape, "inputs of member 1 has length 3, want 2,"},
		"outputs":       {[]learners.Model{linear(2, 1), linear(2, 2)}, []float64{0.5, 0.5}, &shape, "outputs of member 1 has length 2, want 1,"},
		"NaN":           {[]learners.Model{linear(2, 1)}, []float64{math.NaN()}, &number, "NaN"},
		"probabilities": {[]learners.Model{linear(2, 1), logistic}, []float64{0.5, 0.5}, &data, "member 1"},
	} {
		if _, err := learners.NewAverage(c.members, c.weights); !errors.As(err, c.want) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%s: %v, want %q", name, err, c.text)
		}
	}
	inner, err := learners.NewAverage([]learners.Model{linear(2, 1)}, []float64{1})
	if err != nil {
		t.Fatal(err)
	}
	outer, err := learners.NewAverage([]learners.Model{inner}, []float64{1})
	if err != nil {
		t.Fatal(err)
	}
	var unsavable *learners.UnsavableError
	if err := (&learners.File{Model: outer}).Write(io.Discard); !errors.As(err, &unsavable) {
		t.Errorf("an average of averages: %v", err)
	}
}

// The objective is that of the best solution on every set of models with a weight, by
// Gaussian elimination. On fewer rows than models the steps may end before it.
func TestAverageWeights(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 2))
	for trial := range 200 {
		k, n := 1+rng.IntN(7), 1+rng.IntN(40)
		residuals := make([][]float64, k)
		shared := normals(n, rng)
		for i := range residuals {
			residuals[i] = normals(n, rng)
			for j := range residuals[i] {
				residuals[i][j] = math.Exp(float64(trial%5)*rng.NormFloat64()/20)*residuals[i][j] + 3*shared[j]
			}
		}
		if k > 2 && trial%4 == 0 {
			copy(residuals[1], residuals[0])
		}
		var s []float64
		if trial%3 == 0 {
			s = make([]float64, n)
			for j := range s {
				s[j] = rng.ExpFloat64()
			}
		}
		rho := []float64{0.1, 1e-3, 2}[trial%3]
		w := learners.AverageWeights(residuals, s, rho, 0)
		gram := stackingGram(residuals, s, rho)
		sum := 0.0
		for _, v := range w {
			if v < 0 {
				t.Errorf("trial %d: a weight is %v", trial, v)
			}
			sum += v
		}
		if math.Abs(sum-1) > 1e-12 {
			t.Errorf("trial %d: the sum is %v", trial, sum)
		}
		if got, want := quadratic(gram, w), leastOnSimplex(gram); got < want*(1-1e-9) || n >= k && got > want*(1+1e-9) {
			t.Errorf("trial %d, %d models: %v, want %v", trial, k, got, want)
		}
		// Without small weights the others are best among themselves.
		most := 0.0
		for _, v := range w {
			most = max(most, v)
		}
		dropped := learners.AverageWeights(residuals, s, rho, 0.1)
		var used []int
		for i, v := range dropped {
			if v > 0 {
				used = append(used, i)
			}
			if v > 0 && v < 0.1 && most >= 0.1 {
				t.Errorf("trial %d: a weight is %v", trial, v)
			}
		}
		part := make([][]float64, len(used))
		for a, i := range used {
			part[a] = make([]float64, len(used))
			for b, j := range used {
				part[a][b] = gram[i][j]
			}
		}
		if got, want := quadratic(gram, dropped), leastOnSimplex(part); got < want*(1-1e-9) || n >= k && got > want*(1+1e-9) {
			t.Errorf("trial %d, after dropping: %v, want %v", trial, got, want)
		}
	}
	if w := learners.AverageWeights([][]float64{{0, 0}, {1, 2}}, nil, 0, 0.01); w[0] != 1 || w[1] != 0 {
		t.Errorf("a perfect model has the weight %v", w[0])
	}
	if w := learners.AverageWeights([][]float64{{3, 1}}, nil, 0.3, 0.01); w[0] != 1 {
		t.Errorf("one model has the weight %v", w[0])
	}
	if w := learners.AverageWeights([][]float64{{0}, {0}}, nil, 0.1, 0.01); w[0] != 0.5 || w[1] != 0.5 {
		t.Errorf("two perfect models have the weights %v", w)
	}
}

// stackingGram is Σ_i s_i r_ai r_bi, with the penalty on its diagonal.
func stackingGram(residuals [][]float64, s []float64, rho float64) [][]float64 {
	k := len(residuals)
	g := make([][]float64, k)
	best := math.Inf(1)
	for a := range g {
		g[a] = make([]float64, k)
		for b := range g {
			for i, v := range residuals[a] {
				weight := 1.0
				if s != nil {
					weight = s[i]
				}
				g[a][b] += weight * v * residuals[b][i]
			}
		}
		best = min(best, g[a][a])
	}
	for a := range g {
		g[a][a] += rho * best
	}
	return g
}

func quadratic(g [][]float64, w []float64) float64 {
	sum := 0.0
	for i, row := range g {
		for j, v := range row {
			sum += w[i] * v * w[j]
		}
	}
	return sum
}

// leastOnSimplex returns the least wᵀGw for w ≥ 0 with the sum 1. On a set S with positive
// weights, w is proportional to G_SS⁻¹1.
func leastOnSimplex(g [][]float64) float64 {
	k, best := len(g), math.Inf(1)
	for set := 1; set < 1<<k; set++ {
		var at []int
		for i := range k {
			if set>>i&1 == 1 {
				at = append(at, i)
			}
		}
		n := bits.OnesCount(uint(set))
		a := make([][]float64, n)
		for i := range a {
			a[i] = make([]float64, n+1)
			for j := range n {
				a[i][j] = g[at[i]][at[j]]
			}
			a[i][n] = 1
		}
		for c := range n { // Gauss–Jordan with pivots on the diagonal, as G is definite
			for r := range n {
				if r == c {
					continue
				}
				f := a[r][c] / a[c][c]
				for j := c; j <= n; j++ {
					a[r][j] -= f * a[c][j]
				}
			}
		}
		sum, positive := 0.0, true
		w := make([]float64, k)
		for i := range n {
			w[at[i]] = a[i][n] / a[i][i]
			sum += w[at[i]]
			positive = positive && w[at[i]] >= 0
		}
		for i := range w {
			w[i] /= sum
		}
		if positive {
			best = min(best, quadratic(g, w))
		}
	}
	return best
}
