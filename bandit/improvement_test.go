package bandit

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The logarithm of the expected improvement is that of the integral of max(y − best, 0)
// over the normal density, and the derivatives are those of the function.
func TestLogImprovement(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		best, mean, sd := rng.NormFloat64(), 3*rng.NormFloat64(), math.Exp(rng.NormFloat64())
		v, byMean, bySD := LogImprovement(best, mean, sd*sd)
		if z := (mean - best) / sd; z > -5 {
			sum, step := 0.0, 1e-4
			for u := -9.0; u < 9; u += step {
				sum += max(mean+sd*u-best, 0) * math.Exp(-u*u/2) / math.Sqrt(2*math.Pi) * step
			}
			if !close2(v, math.Log(sum), 1e-4) {
				t.Errorf("best %v, mean %v, sd %v: %v, want %v", best, mean, sd, v, math.Log(sum))
			}
		}
		const h = 1e-5
		up, _, _ := LogImprovement(best, mean+h, sd*sd)
		down, _, _ := LogImprovement(best, mean-h, sd*sd)
		wide, _, _ := LogImprovement(best, mean, (sd+h)*(sd+h))
		narrow, _, _ := LogImprovement(best, mean, (sd-h)*(sd-h))
		if !close2(byMean, (up-down)/(2*h), 0.03) || !close2(bySD, (wide-narrow)/(2*h), 0.03) {
			t.Errorf("best %v, mean %v, sd %v: derivatives %v and %v, want %v and %v", best, mean, sd, byMean, bySD, (up-down)/(2*h), (wide-narrow)/(2*h))
		}
	}
	// It goes on where the density is zero in floating point, and grows there.
	last := math.Inf(-1)
	for z := -1000.0; z <= -1; z++ {
		v, _, _ := LogImprovement(0, z, 1)
		if !(v > last) || math.IsInf(v, 0) {
			t.Fatalf("%v at %v standard deviations, %v before", v, z, last)
		}
		last = v
	}
}

func close2(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*(1+math.Abs(a)+math.Abs(b))
}
