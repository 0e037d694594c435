package papers

import (
	"math"
	"testing"
)

// Shares of the blobs are within 5 standard errors.
func TestBlobShares(t *testing.T) {
	const n = 20_000
	p := hardBlobs{4}
	s := p.Sampler()
	x := make([]float64, p.Dim())
	counts := make([]float64, 21)
	for i := range n {
		counts[int(s.At(uint64(i), x))]++
	}
	if got, tol := counts[0]/n, 5*math.Sqrt(0.05*0.95/n); math.Abs(got-0.95) > tol {
		t.Errorf("share of the first blob: got %v, want 0.95 ± %v", got, tol)
	}
	for b := 1; b <= 20; b++ {
		if got, tol := counts[b]/n, 5*math.Sqrt(0.0025/n); math.Abs(got-0.0025) > tol {
			t.Errorf("share of a far blob: got %v, want 0.0025 ± %v", got, tol)
		}
	}
}
