package data

import (
	"math"
	"testing"
)

// within fails unless got is within tol of want.
func within(t *testing.T, what string, got, want, tol float64) {
	t.Helper()
	if !(math.Abs(got-want) <= tol) {
		t.Errorf("%s: got %v, want %v ± %v", what, got, want, tol)
	}
}

var all = map[string]Problem{
	"susy":     SUSYLike{Seed: 1},
	"friedman": Friedman{Noise: 1, Seed: 1},
}

// A row depends only on seed and index, not on the order or on the earlier contents of x.
func TestRowsByIndex(t *testing.T) {
	for name, p := range all {
		forward := p.Sampler()
		rows, targets := make([][]float64, 50), make([]float64, 50)
		for i := range rows {
			rows[i] = make([]float64, p.Dim())
			targets[i] = forward.At(uint64(i), rows[i])
		}
		backward := p.Sampler()
		x := make([]float64, p.Dim())
		for i := len(rows) - 1; i >= 0; i-- {
			y := backward.At(uint64(i), x)
			if y != targets[i] {
				t.Errorf("%s: target of row %d: %v, then %v", name, i, targets[i], y)
			}
			for c := range x {
				if x[c] != rows[i][c] {
					t.Errorf("%s: row %d differs in input %d", name, i, c)
				}
			}
		}
		if rows[0][0] == rows[1][0] {
			t.Errorf("%s: rows 0 and 1 have the same first input", name)
		}
	}
}

// The rates agree with the documented ones within 5 standard errors. With n = 200 000 the
// positive rate has 0.0011 and the Bayes error, a mean of numbers with standard deviation
// 0.15, has 0.0004. The documented figures are rounded to 0.0005.
func TestSUSYLikeRates(t *testing.T) {
	const n = 200_000
	s := SUSYLike{Seed: 3}.Sampler().(*susySampler)
	var positive, bayes float64
	var m, q [18]float64
	x := make([]float64, 18)
	for i := range n {
		y, probability := s.sample(uint64(i), x)
		if y > 0 {
			positive++
		}
		bayes += min(probability, 1-probability)
		for c, v := range x {
			m[c] += v
			q[c] += v * v
		}
	}
	within(t, "positive rate", positive/n, 0.374, 0.0005+5*0.0011)
	within(t, "Bayes error", bayes/n, 0.146, 0.0005+5*0.0004)
	for c := range m {
		within(t, "mean of a feature", m[c]/n, 0, 0.015)
		within(t, "variance of a feature", q[c]/n, 1, 0.05)
	}
}

// E y is 10·E sin(πx1x2) + 20/12 + 5 + 2.5, where the first term is
// 10·∫(1−cos πu)/(πu) du = 10·0.5246…. The variance of y is about 24.8 (1991).
func TestFriedmanMean(t *testing.T) {
	const n = 100_000
	p := Friedman{Noise: 1, Seed: 5}
	s := p.Sampler()
	x := make([]float64, 10)
	sum, noise := 0.0, 0.0
	for i := range n {
		y := s.At(uint64(i), x)
		sum += y
		noise += (y - p.Value(x)) * (y - p.Value(x))
	}
	first := 0.0
	const steps = 10_000
	for i := range steps { // midpoint rule
		u := (float64(i) + 0.5) / steps
		first += (1 - math.Cos(math.Pi*u)) / (math.Pi * u) / steps
	}
	within(t, "mean", sum/n, 10*first+20.0/12+7.5, 5*math.Sqrt(25.0/n))
	within(t, "noise variance", noise/n, 1, 5*math.Sqrt(2.0/n))
}

func BenchmarkSUSYLike(b *testing.B) {
	s := SUSYLike{}.Sampler()
	x := make([]float64, 18)
	for i := 0; b.Loop(); i++ {
		s.At(uint64(i), x)
	}
}
