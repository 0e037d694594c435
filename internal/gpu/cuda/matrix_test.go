//go:build cuda && cgo && linux

package cuda

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/internal/gpu"
)

// A matrix that is stored, one that is computed in each product, and one that is computed a
// chunk at a time give the same bits, in one launch or many. Real devices have too much memory
// for the last two.
func TestProductsStoredOrNot(t *testing.T) {
	opened, err := gpu.Registered().Open(0)
	if err != nil {
		t.Fatal(err)
	}
	const n, m, d, c = 1500, 700, 3, 2
	rng := rand.New(rand.NewPCG(1, 0))
	draw := func(n int) []float64 {
		s := make([]float64, n)
		for i := range s {
			s[i] = rng.NormFloat64()
		}
		return s
	}
	x, v, u := draw((n+m)*d), draw(m*c), draw(n*c)
	rows := func(from, n int) gpu.Rows {
		return gpu.Rows{N: n, D: d, Row: func(dst []float64, i int) {
			for k := range dst {
				dst[k] = x[(from+i)*d+k] / 5
			}
		}}
	}
	for _, single := range []bool{true, false} {
		made, err := opened.NewMatrix(gpu.Problem{Function: gpu.Function{Profile: gpu.Decay, Factor: 1}, Single: single, X: rows(0, n), Y: rows(n, m)})
		if err != nil {
			t.Fatal(err)
		}
		mat := made.(*matrix)
		if !mat.Stored() {
			t.Fatal("K is not stored, so that this test says nothing")
		}
		products := func() []float64 {
			out := make([]float64, (n+m)*c)
			if err := mat.Apply(out[:n*c], v, c); err != nil {
				t.Fatal(err)
			}
			if err := mat.ApplyT(out[n*c:], u, c); err != nil {
				t.Fatal(err)
			}
			return out
		}
		want, k, many := products(), mat.k, blocks
		for name, change := range map[string]func(){
			"stored":   func() { mat.k, mat.panels = k, mat.np },
			"fused":    func() { mat.k, mat.panels = 0, 0 },
			"by chunk": func() { mat.k, mat.panels, mat.filled = k, chunk, false },
		} {
			change()
			if mat.Stored() != (name == "stored") {
				t.Errorf("%s: K is stored: %t", name, mat.Stored())
			}
			for _, blocks = range []int64{many, 7} {
				for i, g := range products() {
					if g != want[i] {
						t.Fatalf("%s, single %t, %d blocks: element %d is %v, that of a stored K is %v", name, single, blocks, i, g, want[i])
					}
				}
			}
			blocks = many
		}
		mat.k = k
		if err := mat.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Limit sets the free memory of devices for one test.
func Limit(t *testing.T, bytes int64) {
	limit = bytes
	t.Cleanup(func() { limit = math.MaxInt64 })
}
