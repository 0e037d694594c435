package blocked

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSymm compares the product with sums over a matrix whose other half and diagonal are
// NaN.
func TestSymm(t *testing.T) {
	const seed = 13
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	for _, n := range []int{0, 1, 2, 7, 50, 191, 192, 193, 390} {
		for _, m := range []int{1, 2, 9} {
			a, b, c := random[float64](rng, n, n, 1), random[float64](rng, n, m, (m-1)/2), random[float64](rng, n, m, m-1)
			diagonal, want := make([]float64, n), make([]float64, len(c.Data))
			copy(want, c.Data)
			for i := range n {
				diagonal[i] = rng.NormFloat64()
				for j := range i + 1 {
					a.Data[i*a.Stride+j] = math.NaN()
				}
			}
			for i := range n {
				for o := range m {
					sum := diagonal[i] * b.Data[i*b.Stride+o]
					for j := range n {
						if j != i {
							sum += a.Data[min(i, j)*a.Stride+max(i, j)] * b.Data[j*b.Stride+o]
						}
					}
					want[i*c.Stride+o] = sum
				}
			}
			Symm(a, diagonal, b, c)
			near(t, fmt.Sprint("symm ", n, m), c, want, 4*epsilon[float64]()*float64(n+2))
		}
	}
}
