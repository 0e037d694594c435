package sketch

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// keysOf returns n different keys.
func keysOf(n int, rng *rand.Rand) []uint64 {
	keys := make([]uint64, n)
	for i := range keys {
		keys[i] = rng.Uint64()
	}
	return keys
}

// A budget keeps at most that many points, and Σ 1/A is each row's count on average.
// The rows have high and low probability, with keys and without, and the budget binds
// always, sometimes or never.
func TestPosteriorVarianceBudget(t *testing.T) {
	racetest.Alone(t)
	const n, repeats, lambda = 40, 4000, 0.01
	rng := kerneltest.Seeded(t, 80)
	x := kerneltest.Points(rng, n, 2)
	variances := make([]float64, n)
	for i := range variances {
		variances[i] = 0.1 * lambda * n * math.Exp(rng.NormFloat64())
	}
	for _, keys := range [][]uint64{nil, keysOf(n, rng)} {
		for _, most := range []int{1, 5, 16, 40} {
			s := PosteriorVariance{Variances: variances, MaxPoints: most, Keys: keys}
			var total [n]float64
			points := 0.0
			for rep := range uint64(repeats) {
				d := must(s.Sample(background, kerneltest.Gaussian(1), kernel.FromRows(x), lambda, rand.New(rand.NewPCG(81, rep))))
				if d.Len() > most || d.N != n || d.Lambda != lambda || d.Rows != d.Len() {
					t.Fatalf("%d points for a budget of %d, N = %d, λ = %g, %d rows", d.Len(), most, d.N, d.Lambda, d.Rows)
				}
				points += float64(d.Len()) / repeats
				for j, i := range d.Indices {
					total[i] += 1 / d.Weights[j] / repeats
				}
			}
			mean, chi := sum(total[:])/n, 0.0
			t.Logf("keys %v, budget %2d: %.1f points, Σ 1/A = %.3f n, rows between %.2f and %.2f",
				keys != nil, most, points, mean, slices.Min(total[:]), slices.Max(total[:]))
			for _, v := range total {
				chi += (v - 1) * (v - 1) / n
			}
			if band := 6 / math.Sqrt(float64(most)*repeats/n); math.Abs(mean-1) > band || math.Sqrt(chi) > band {
				t.Errorf("keys %v, budget %d: not unbiased", keys != nil, most)
			}
		}
	}
}

// With keys the kept rows and their weights do not depend on the order of the rows, and
// hardly on other rows.
func TestPosteriorVarianceKeys(t *testing.T) {
	const n, lambda = 300, 0.01
	rng := kerneltest.Seeded(t, 82)
	x := kerneltest.Points(rng, n, 2)
	variances, counts, keys := make([]float64, n), make([]int, n), keysOf(n, rng)
	for i := range variances {
		variances[i], counts[i] = 0.02*math.Exp(rng.NormFloat64()), 1+rng.IntN(3)
	}
	sample := func(order []int, oversampling float64, most int, seed uint64) map[uint64]float64 {
		s := PosteriorVariance{
			Variances: pick(variances, order), Counts: pick(counts, order), Keys: pick(keys, order),
			MaxPoints: most, Oversampling: oversampling,
		}
		rows := kernel.FromRows(x.Select(order))
		d := must(s.Sample(background, kerneltest.Gaussian(1), rows, lambda, rand.New(rand.NewPCG(83, seed))))
		kept := map[uint64]float64{}
		for j, i := range d.Indices {
			kept[s.Keys[i]] = d.Weights[j]
		}
		return kept
	}
	equal := func(a, b map[uint64]float64) bool {
		for key, w := range a {
			if b[key] != w {
				return false
			}
		}
		return len(a) == len(b)
	}
	inOrder, different := upTo(n), 0
	for seed := range uint64(20) {
		for _, c := range []struct {
			oversampling float64
			most         int
		}{{4, 0}, {4, 30}, {4, 1}, {1e-9, 0}} { // the last one falls back to one draw
			want := sample(inOrder, c.oversampling, c.most, seed)
			if got := sample(rng.Perm(n), c.oversampling, c.most, seed); !equal(got, want) {
				t.Errorf("%+v: in another order other rows are kept", c)
			}
			if !equal(sample(inOrder, c.oversampling, c.most, seed), want) {
				t.Errorf("%+v: an equal stream gives another dictionary", c)
			}
			if len(want) == 0 || c.oversampling < 1 && len(want) != 1 {
				t.Errorf("%+v: %d points", c, len(want))
			}
			if !equal(sample(inOrder, c.oversampling, c.most, seed+100), want) {
				different++
			}
		}
	}
	if different < 75 {
		t.Errorf("only %d of 80 dictionaries differ with the seed", different)
	}
	// The fallback draws in proportion to the score.
	const repeats = 20_000
	few, chance := PosteriorVariance{Variances: []float64{1, 2, 5}, Keys: []uint64{7, 8, 9}, Oversampling: 1e-12}, [3]float64{}
	for rep := range uint64(repeats) {
		d := must(few.Sample(background, kerneltest.Gaussian(1), kernel.FromRows(x.Slice(0, 3)), 1, rand.New(rand.NewPCG(84, rep))))
		chance[d.Indices[0]] += 1.0 / repeats
		if want := few.Variances[d.Indices[0]] / 8; math.Abs(d.Weights[0]-want) > 1e-12 {
			t.Fatalf("weight %g, want %g", d.Weights[0], want)
		}
	}
	for i, v := range few.Variances {
		if math.Abs(chance[i]-v/8) > 0.02 {
			t.Errorf("row %d is the last resort with probability %.3f, want %.3f", i, chance[i], v/8)
		}
	}
	few.Variances = []float64{0, 0, 0}
	if d := must(few.Sample(background, kerneltest.Gaussian(1), kernel.FromRows(x.Slice(0, 3)), 1, rng)); d.Len() != 1 || d.Weights[0] != 1.0/3 {
		t.Errorf("no variance: %d points, weights %v", d.Len(), d.Weights)
	}
}

// Whole weights are counts, where n is the number of rows in ξ² = λn.
func TestPosteriorVarianceWeights(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 85), 4, 2)
	variances := []float64{0.01, 0.02, 0.05, 0.1}
	sample := func(s PosteriorVariance, lambda float64) *Dictionary {
		s.Variances = variances
		return must(s.Sample(background, kerneltest.Gaussian(1), kernel.FromRows(x), lambda, kerneltest.Seeded(t, 86)))
	}
	const noise = 0.3
	counted := sample(PosteriorVariance{Counts: []int{5, 4, 1, 2}}, LambdaOfNoise(noise, 12))
	weighted := sample(PosteriorVariance{Weights: []float64{5, 4, 1, 2}}, LambdaOfNoise(noise, 4))
	if !slices.Equal(counted.Indices, weighted.Indices) || counted.N != 12 || weighted.N != 4 {
		t.Errorf("rows %v of %d by counts, %v of %d by weights", counted.Indices, counted.N, weighted.Indices, weighted.N)
	}
	requireClose(t, "weights", weighted.Weights, counted.Weights, 1e-12)
	a := must(counted.Scores(background, kerneltest.Gaussian(1), kernel.FromRows(x), 1))
	requireClose(t, "scores", must(weighted.Scores(background, kerneltest.Gaussian(1), kernel.FromRows(x), 1)), a, 1e-10)

	k, src := kerneltest.Gaussian(1), kernel.FromRows(x)
	for what, s := range map[string]PosteriorVariance{
		"Weights and Counts": {Variances: variances, Weights: []float64{1, 1, 1, 1}, Counts: []int{1, 1, 1, 1}},
		"weight 0":           {Variances: variances, Weights: []float64{1, 0, 1, 1}},
		"weight NaN":         {Variances: variances, Weights: []float64{1, math.NaN(), 1, 1}},
		"variance NaN":       {Variances: []float64{1, math.NaN(), 1, 1}},
		"MaxPoints < 0":      {Variances: variances, MaxPoints: -1},
	} {
		var parameter *ParameterError
		if _, err := s.Sample(background, k, src, 1, kerneltest.Seeded(t, 87)); !errors.As(err, &parameter) {
			t.Errorf("%s: %v", what, err)
		}
	}
	for what, s := range map[string]PosteriorVariance{
		"weights": {Variances: variances, Weights: []float64{1}},
		"keys":    {Variances: variances, Keys: []uint64{1}},
	} {
		var shape *kernel.ShapeError
		if _, err := s.Sample(background, k, src, 1, kerneltest.Seeded(t, 87)); !errors.As(err, &shape) {
			t.Errorf("too few %s: %v", what, err)
		}
	}
}
