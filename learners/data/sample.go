package data

import (
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/internal/stream"
)

// Problem is a distribution of inputs and targets, with a row for every index.
type Problem interface {
	// Dim returns the number of inputs d.
	Dim() int
	// Sampler returns a Sampler, which one goroutine may use at a time.
	Sampler() Sampler
}

// Sampler makes rows.
type Sampler interface {
	// At sets x, of length Dim, to the inputs of row i and returns its target.
	At(i uint64, x []float64) float64
}

// rng is a random stream that can be set to the start of any row.
type rng struct {
	pcg  rand.PCG
	r    *rand.Rand
	seed uint64
}

func newRNG(seed uint64, purpose string) *rng {
	g := &rng{seed: stream.Derive(seed, purpose, 0)}
	g.r = rand.New(&g.pcg)
	return g
}

// row starts the stream of row i.
func (g *rng) row(i uint64) *rand.Rand {
	g.pcg.Seed(g.seed, stream.Mix(i))
	return g.r
}

// beta draws from Beta(a, b), a, b ≥ 1.
func beta(r *rand.Rand, a, b float64) float64 {
	x, y := stream.Gamma(a, r), stream.Gamma(b, r)
	return x / (x + y)
}

// vonMises draws an angle in [−π, π] around mean with concentration kappa > 0
// (Best and Fisher, Efficient simulation of the von Mises distribution, 1979).
func vonMises(r *rand.Rand, mean, kappa float64) float64 {
	tau := 1 + math.Sqrt(1+4*kappa*kappa)
	rho := (tau - math.Sqrt(2*tau)) / (2 * kappa)
	s := (1 + rho*rho) / (2 * rho)
	for {
		z := math.Cos(math.Pi * r.Float64())
		f := (1 + s*z) / (s + z)
		c := kappa * (s - f)
		u := 1 - r.Float64()
		if c*(2-c) <= u && math.Log(c/u)+1 < c {
			continue
		}
		theta := math.Acos(max(-1, min(1, f)))
		if r.Float64() < 0.5 {
			theta = -theta
		}
		return math.Remainder(mean+theta, 2*math.Pi)
	}
}
