package sketch

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

func TestChoose(t *testing.T) {
	rng := kerneltest.Seeded(t, 40)
	for _, c := range [][2]int{{1, 1}, {10, 0}, {10, 2}, {10, 5}, {10, 10}, {10, 11}, {9000, 100}, {1 << 40, 100}} {
		got := choose(c[0], c[1], rng)
		if len(got) != min(c[0], c[1]) || !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
			t.Errorf("choose(%d, %d) = %v", c[0], c[1], got)
		}
	}
	for _, m := range []int{2, 5} { // both methods, where every number is equally likely
		var count [10]float64
		const repeats = 20_000
		for range repeats {
			for _, i := range choose(10, m, rng) {
				count[i]++
			}
		}
		p := float64(m) / 10
		for i, c := range count {
			if math.Abs(c/repeats-p) > 5*math.Sqrt(p*(1-p)/repeats) {
				t.Errorf("m = %d: %d is there with probability %.4f", m, i, c/repeats)
			}
		}
	}
}

// Gaps are geometric. Each number is there with probability p, and each pair with p².
func TestThin(t *testing.T) {
	rng := kerneltest.Seeded(t, 41)
	const repeats = 20_000
	for _, p := range []float64{0.003, 0.1, 0.7, 1} {
		var count [12]float64
		pair := 0.0
		for range repeats {
			got := thin(12, p, rng)
			for q, i := range got {
				count[i]++
				if q > 0 && got[q-1] == i-1 && i == 7 {
					pair++
				}
			}
		}
		for i, c := range count {
			if math.Abs(c/repeats-p) > 5*math.Sqrt(p*(1-p)/repeats) {
				t.Errorf("p = %g: %d is there with probability %.4f", p, i, c/repeats)
			}
		}
		if math.Abs(pair/repeats-p*p) > 5*math.Sqrt(p*p/repeats) {
			t.Errorf("p = %g: 6 and 7 with probability %.5f", p, pair/repeats)
		}
	}
	if got := thin(1<<50, 1e-300, rng); len(got) != 0 {
		t.Errorf("p = 1e-300: %v", got)
	}
}

func TestDistribution(t *testing.T) {
	rng := kerneltest.Seeded(t, 42)
	for _, weights := range [][]float64{{1, 0, 3}, {0, 0, 0}, {5}, {0, 1e-300}} {
		c := cumulative(weights)
		count := make([]float64, len(weights))
		const repeats = 20_000
		for range repeats {
			count[c.draw(rng)]++
		}
		for i := range count {
			p := c.probability(i)
			if math.Abs(count[i]/repeats-p) > 5*math.Sqrt(p*(1-p)/repeats) {
				t.Errorf("%v: %d with probability %.4f, want %.4f", weights, i, count[i]/repeats, p)
			}
		}
	}
}

func TestInclude(t *testing.T) {
	rng := kerneltest.Seeded(t, 43)
	idx, weights, err := Include([]float64{1, 0, 0.2, 5}, 2, rng)
	if err != nil || idx[0] != 0 || slices.Contains(idx, 1) || !slices.Contains(idx, 3) || weights[0] != 1 {
		t.Errorf("%v %v %v", idx, weights, err)
	}
	for range 100 {
		idx, weights, err = Include([]float64{1e-12, 3e-12}, 1, rng)
		if err != nil || len(idx) != 1 || math.Abs(weights[0]-[]float64{0.25, 0.75}[idx[0]]) > 1e-12 {
			t.Fatalf("%v %v %v", idx, weights, err)
		}
	}
	var bad *ParameterError
	for _, scores := range [][]float64{{1, math.NaN()}, {-1}, {math.Inf(1)}} {
		if _, _, err := Include(scores, 1, rng); !errors.As(err, &bad) {
			t.Errorf("%v: %v", scores, err)
		}
	}
	if _, _, err := Include([]float64{1}, 0, rng); !errors.As(err, &bad) {
		t.Error(err)
	}
	if _, _, err := Include(nil, 1, rng); !errors.As(err, new(*EmptyError)) {
		t.Error(err)
	}
}
