package bandit

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestTrustRegionSize replays random histories by the documented rules, from the whole
// history each time.
func TestTrustRegionSize(t *testing.T) {
	const seed, d = 21, 6
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 200 {
		fold := TrustRegion{Dim: d}
		var values []float64 // seen, in order
		length, good, bad, stale, idle := trustFirst, 0, 0, 0, 0
		rise := rng.Float64()
		for range 80 {
			suggested, failed, y := rng.IntN(4) > 0, false, 0.0
			improved := false
			switch rng.IntN(10) {
			case 0, 2:
				failed, y = true, 1e9
			case 1:
				y = -math.MaxFloat64
				values = append(values, y)
				improved = len(values) == 1
			default:
				y = math.Round(rng.NormFloat64()*4) / 4 // ties happen
				if rng.Float64() < rise {
					y += float64(len(values)) / 8
				}
				sorted := slices.Sorted(slices.Values(values))
				slices.Reverse(sorted)
				sorted = sorted[:min(len(sorted), 8)]
				improved = len(sorted) == 0 || y > sorted[0] && y-sorted[0] > (sorted[0]-sorted[len(sorted)-1])/1000
				values = append(values, y)
			}
			fold.Tell(y, failed, suggested)
			if idle++; improved {
				idle = 0
			}
			if suggested {
				if improved {
					good, bad, stale = good+1, 0, 0
				} else {
					good, bad, stale = 0, bad+1, stale+1
				}
				if good == 3 {
					length, good = math.Min(2*length, 1.6), 0
				}
				if bad == d {
					length, bad = length/2, 0
				}
				if length < 1.0/128 {
					length, good, bad = 0.8, 0, 0
				}
			}
			if fold.Idle != idle {
				t.Fatalf("%d results since an improvement, want %d", fold.Idle, idle)
			}
			if fold.Length != length || fold.Stale != stale {
				t.Fatalf("after %d results: length %v, stale %d, want %v, %d", len(values), fold.Length, fold.Stale, length, stale)
			}
		}
	}
}
