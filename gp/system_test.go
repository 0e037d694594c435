package gp

import (
	"math"
	"math/rand/v2"
	"testing"
)

// The two ways to factor V agree with each other and with V itself, as far as its
// condition allows.
func TestFactorsOfSystemAgree(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, m := range []int{1, 5, 33, 80} {
		for _, u := range []int{0, 1, 20, 300} {
			for _, lambda := range []float64{1, 1e-3, 1e-6} {
				a, b := make([]float64, (u+m)*m), make([]float64, u)
				for i := range u {
					b[i] = rng.NormFloat64()
					for j := range m { // columns of very different sizes
						a[i*m+j] = rng.NormFloat64() * math.Exp(-10*float64(j)/float64(m)) / math.Sqrt(float64(m))
					}
				}
				for j := range m {
					a[(u+j)*m+j] = math.Sqrt(lambda)
				}
				fast, ok := choleskyQR(a, b, m, lambda)
				if !ok {
					t.Fatalf("m = %d, u = %d, λ = %g: refused", m, u, lambda)
				}
				slow := householder(a, b, m)
				for i := range m {
					for j := range i + 1 {
						if d := math.Abs(fast.l.row(i)[j] - slow.l.row(i)[j]); d > 1e-10*slow.l.row(j)[j]/math.Sqrt(lambda) {
							t.Fatalf("m = %d, u = %d, λ = %g: L(%d, %d) = %g, by Householder %g", m, u, lambda, i, j, fast.l.row(i)[j], slow.l.row(i)[j])
						}
					}
					if d := math.Abs(fast.w[i] - slow.w[i]); d > 1e-10*(1+norm(slow.w))/math.Sqrt(lambda) {
						t.Fatalf("m = %d, u = %d, λ = %g: w(%d) = %g, by Householder %g", m, u, lambda, i, fast.w[i], slow.w[i])
					}
				}
			}
		}
	}
	// If the square of A is singular in working precision, the fast one refuses.
	if _, ok := choleskyQR([]float64{1, 1, 1, 1 + 1e-9, 1e-9, 0, 0, 1e-9}, []float64{1, 2}, 2, 1e-18); ok {
		t.Error("factored AᵀA of condition 10¹⁸")
	}
}
