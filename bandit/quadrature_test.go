package bandit

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// TestQuadratureFeatures compares features with their definition, for numbers of
// rows in one block and in several, and for rows with gaps between them.
func TestQuadratureFeatures(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, c := range []struct {
		nodes, n int
		scales   []float64
	}{{1, 3, []float64{0.5}}, {2, 1, []float64{0.5}}, {33, 250, []float64{0.05}}, {7, 100, []float64{0.3, 2}}, {6, 0, []float64{1, 1}}, {5, 13, []float64{1, 0.2, 7}}} {
		q, err := NewQuadrature(c.nodes, c.scales...)
		if err != nil {
			t.Fatal(err)
		}
		d, m := len(c.scales), q.Features()
		data := make([]float64, c.n*(d+2))
		for i := range data {
			data[i] = rng.NormFloat64()
		}
		x := kernel.NewPointsStride(c.n, d, d+2, data)
		phi, one := make([]float64, c.n*m), make([]float64, m)
		if err := q.Apply(phi, x); err != nil {
			t.Fatal(err)
		}
		for i := range c.n {
			if err := q.Apply(one, x.Slice(i, i+1)); err != nil {
				t.Fatal(err)
			}
			for j, s := range q.scale {
				arg, size := 0.0, 1.0
				for l, v := range x.Row(i) {
					arg += q.freq[j*d+l] * v
					size += math.Abs(q.freq[j*d+l] * v)
				}
				sin, cos := math.Sincos(arg)
				for h, want := range []float64{s * cos, s * sin} {
					got := phi[i*m+2*j+h]
					if !(math.Abs(got-want) <= 1e-15*s*size) {
						t.Fatalf("seed %d, %d nodes, ℓ = %v: feature %d of row %d is %g, want %g", seed, c.nodes, c.scales, 2*j+h, i, got, want)
					}
					if got != one[2*j+h] {
						t.Fatalf("seed %d: feature %d of row %d depends on the other rows", seed, 2*j+h, i)
					}
				}
			}
		}
	}
}
