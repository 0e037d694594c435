package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// volume is the volume that points in the unit cube dominate, by definition. It adds up the
// cells of the grid of all their coordinates that some point dominates.
func volume(points [][]float64) float64 {
	if len(points) == 0 {
		return 0
	}
	k := len(points[0])
	cuts := make([][]float64, k)
	for j := range k {
		cuts[j] = []float64{0}
		for _, p := range points {
			cuts[j] = append(cuts[j], p[j])
		}
		slices.Sort(cuts[j])
	}
	sum, at := 0.0, make([]int, k)
	var walk func(j int, size float64)
	walk = func(j int, size float64) {
		if j == k {
			for _, p := range points {
				inside := true
				for c := range k {
					inside = inside && p[c] >= cuts[c][at[c]+1]
				}
				if inside {
					sum += size
					return
				}
			}
			return
		}
		for at[j] = 0; at[j]+1 < len(cuts[j]); at[j]++ {
			if d := cuts[j][at[j]+1] - cuts[j][at[j]]; d > 0 {
				walk(j+1, size*d)
			}
		}
	}
	walk(0, 1)
	return sum
}

// nondominated draws a front.
func nondominated(rng *rand.Rand, n, k int) [][]float64 {
	var out [][]float64
	for len(out) < n {
		p, norm := make([]float64, k), 0.0
		for j := range p {
			p[j] = rng.ExpFloat64()
			norm += p[j]
		}
		for j := range p {
			p[j] = math.Pow(p[j]/norm, 0.3+rng.Float64()) // bent, so that volumes differ
		}
		if !slices.ContainsFunc(out, func(q []float64) bool {
			less, more := false, false
			for j := range p {
				less, more = less || p[j] < q[j], more || p[j] > q[j]
			}
			return !less || !more
		}) {
			out = append(out, p)
		}
	}
	return out
}

// TestShares compares shares with differences of volumes.
func TestShares(t *testing.T) {
	const seed = 31
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, k := range []int{2, 3} {
		for range 30 {
			unit, _ := toUnit(nondominated(rng, 1+rng.IntN(9), k))
			var left []int
			for i := range unit {
				if rng.IntN(4) > 0 {
					left = append(left, i)
				}
			}
			shares, tolerance := sharesByProbes, 0.012
			if k == 2 {
				shares, tolerance = sharesOfPlane, 1e-12
			}
			for at, got := range shares(unit)(left) {
				var all, others [][]float64
				for n, i := range left {
					all = append(all, unit[i])
					if n != at {
						others = append(others, unit[i])
					}
				}
				if want := volume(all) - volume(others); math.Abs(got-want) > tolerance {
					t.Fatalf("seed %d: share %v, want %v of %v", seed, got, want, unit)
				}
			}
		}
	}
}

// The kept points have the best of each objective and nearly all of the volume, where
// points are crowded and where their scales differ by orders of magnitude. They have more
// volume than the latest points.
func TestThin(t *testing.T) {
	const seed = 32
	rng := rand.New(rand.NewPCG(seed, 1))
	for _, k := range []int{2, 3, 4} {
		for range 10 {
			points := nondominated(rng, 24, k)
			for i := range 8 { // a crowd
				p := slices.Clone(points[0])
				p[0], p[1] = p[0]+1e-6*float64(i+1), p[1]-1e-6*float64(i+1)
				points = append(points, p)
			}
			for _, p := range points {
				p[0] = 1e6*p[0] - 3
			}
			left := HypervolumeSubset(points, 12)
			if len(left) != 12 || !slices.IsSorted(left) {
				t.Fatalf("seed %d: %v", seed, left)
			}
			unit, _ := toUnit(points)
			var kept [][]float64
			crowd := 0
			for _, i := range left {
				kept = append(kept, unit[i])
				if i == 0 || i >= 24 {
					crowd++
				}
			}
			for j := range k {
				best := slices.MaxFunc(kept, func(p, q []float64) int { return map[bool]int{true: 1, false: -1}[p[j] > q[j]] })
				if best[j] < 1 {
					t.Errorf("seed %d: of objective %d the best left is %v", seed, j, best[j])
				}
			}
			if crowd > 4 {
				t.Errorf("seed %d: %d of the crowd are left", seed, crowd)
			}
			if k > 3 {
				continue
			}
			all, have, last := volume(unit), volume(kept), volume(unit[len(unit)-12:])
			if have < 0.9*all || have < last {
				t.Errorf("seed %d, %d objectives: %v of %v is left, of the last ones %v", seed, k, have, all, last)
			}
		}
	}
	for _, same := range [][][]float64{{{1, 2}, {1, 2}, {1, 2}}, {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}} {
		if left := HypervolumeSubset(same, 2); len(left) != 2 {
			t.Errorf("%v are left of %v", left, same)
		}
	}
}
