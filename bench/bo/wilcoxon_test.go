package bo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
)

// enumerated is the two-sided p-value by its definition. It is the share of all signs whose
// sum is as far from the middle as that of the differences.
func enumerated(d []float64) float64 {
	var kept []float64
	for _, v := range d {
		if v != 0 {
			kept = append(kept, v)
		}
	}
	rank := func(i int) float64 { // of |kept_i|, which counts those below, and half of its equals
		below, equal := 0, 0
		for _, v := range kept {
			switch {
			case math.Abs(v) < math.Abs(kept[i]):
				below++
			case math.Abs(v) == math.Abs(kept[i]):
				equal++
			}
		}
		return float64(below) + float64(equal+1)/2
	}
	deviation := func(positive func(i int) bool) float64 {
		sum := 0.0
		for i := range kept {
			if positive(i) {
				sum += rank(i)
			} else {
				sum -= rank(i)
			}
		}
		return math.Abs(sum)
	}
	have, far := deviation(func(i int) bool { return kept[i] > 0 }), 0
	for signs := range 1 << len(kept) {
		if deviation(func(i int) bool { return signs>>i&1 == 1 }) >= have-1e-9 {
			far++
		}
	}
	return float64(far) / float64(int(1)<<len(kept))
}

func TestSignedRankIsExact(t *testing.T) {
	racetest.Alone(t)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		d := make([]float64, rng.IntN(11))
		levels := 1 + rng.IntN(30) // few levels, for many ties and zeros
		for i := range d {
			d[i] = float64(rng.IntN(2*levels+1)-levels) + rng.Float64()*float64(rng.IntN(2))
			if rng.IntN(20) == 0 {
				d[i] = math.Inf(1 - 2*rng.IntN(2))
			}
		}
		got, want := signedRank(d), enumerated(d)
		if math.Abs(got-want) > 1e-12 {
			t.Fatalf("seed %d: %v has p %v, not %v", seed, d, got, want)
		}
	}
}

// These are the published critical values of Wilcoxon's table at 0.05, two-sided. They are
// the sums of the smaller side that are just significant.
func TestSignedRankHasTheCriticalValuesOfTheTable(t *testing.T) {
	for n, critical := range map[int]int{6: 0, 7: 2, 8: 3, 9: 5, 10: 8, 15: 25, 20: 52, 25: 89} {
		at := func(sum int) float64 {
			d := make([]float64, n)
			for i := n; i >= 1; i-- { // greedy, because any sum up to n(n+1)/2 is possible
				d[i-1] = -float64(i)
				if i <= sum {
					d[i-1], sum = float64(i), sum-i
				}
			}
			return signedRank(d)
		}
		if p := at(critical); p > 0.05 {
			t.Errorf("n %d, sum %d: p %v", n, critical, p)
		}
		if p := at(critical + 1); p <= 0.05 {
			t.Errorf("n %d, sum %d: p %v", n, critical+1, p)
		}
	}
}

func TestRanksShareTies(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		v := make([]float64, rng.IntN(12))
		for i := range v {
			v[i] = float64(rng.IntN(5))
			if rng.IntN(6) == 0 {
				v[i] = math.Inf(1)
			}
		}
		for i, r := range ranks(v) {
			below, equal := 0, 0
			for _, w := range v {
				if w < v[i] {
					below++
				} else if w == v[i] {
					equal++
				}
			}
			if want := float64(below) + float64(equal+1)/2; r != want {
				t.Fatalf("seed %d: rank of %v in %v is %v, not %v", seed, v[i], v, r, want)
			}
		}
	}
}
