package blocked

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// TestSymm compares the product with sums over a matrix whose other half and diagonal are
// NaN.
func TestSymm(t *testing.T) { both(t, testSymm[float32], testSymm[float64]) }

func testSymm[T Float](t *testing.T) {
	const seed = 13
	t.Log("seed", seed)
	rng := rand.New(rand.NewPCG(seed, seed))
	for _, n := range []int{0, 1, 2, 7, 50, 191, 192, 193, 390} {
		for _, m := range []int{1, 2, 9} {
			a, b, c := random[T](rng, n, n, 1), random[T](rng, n, m, (m-1)/2), random[T](rng, n, m, m-1)
			diagonal, want := make([]T, n), make([]float64, len(c.Data))
			for i, v := range c.Data {
				want[i] = float64(v)
			}
			for i := range n {
				diagonal[i] = T(rng.NormFloat64())
				for j := range i + 1 {
					a.Data[i*a.Stride+j] = T(math.NaN())
				}
			}
			for i := range n {
				for o := range m {
					sum := float64(diagonal[i]) * float64(b.Data[i*b.Stride+o])
					for j := range n {
						if j != i {
							sum += float64(a.Data[min(i, j)*a.Stride+max(i, j)]) * float64(b.Data[j*b.Stride+o])
						}
					}
					want[i*c.Stride+o] = sum
				}
			}
			Symm(1, a, diagonal, b, c)
			near(t, fmt.Sprint("symm ", n, m), c, want, 4*epsilon[T]()*float64(n+2))
			again := c.clone()
			Symm(3, a, diagonal, b, again)
			equal(t, fmt.Sprint("symm ", n, m), again, c)
		}
	}
}
