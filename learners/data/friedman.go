package data

import (
	"fmt"
	"math"
)

// Friedman is one of three regression problems of J. Friedman, Multivariate adaptive
// regression splines, Annals of Statistics 1991, with normal noise of standard deviation
// Noise.
//
//	Kind 1: x ∈ [0,1]^10, y = 10 sin(π x1 x2) + 20 (x3 − ½)² + 10 x4 + 5 x5;
//	        x6 … x10 do not matter
//	Kind 2: y = √(x1² + (x2 x3 − 1/(x2 x4))²)
//	Kind 3: y = arctan((x2 x3 − 1/(x2 x4))/x1)
//
// with x1 ∈ [0,100], x2 ∈ [40π, 560π], x3 ∈ [0,1], x4 ∈ [1,11] for kinds 2 and 3. All
// inputs are uniform. Friedman's noise is 1, 125 and 0.1.
type Friedman struct {
	Kind  int
	Noise float64
	Seed  uint64
}

// Check requires Kind 1, 2 or 3 and a finite Noise ≥ 0.
func (p Friedman) Check() error {
	if p.Kind < 1 || p.Kind > 3 || !(p.Noise >= 0 && p.Noise <= math.MaxFloat64) {
		return fmt.Errorf("data: Friedman's problem of kind %d with noise %v; want kind 1, 2 or 3 and noise ≥ 0", p.Kind, p.Noise)
	}
	return nil
}

// Dim returns 10, 4 or 4.
func (p Friedman) Dim() int {
	if p.Kind == 1 {
		return 10
	}
	return 4
}

// Value returns the target without noise.
func (p Friedman) Value(x []float64) float64 {
	switch p.Kind {
	case 1:
		return 10*math.Sin(math.Pi*x[0]*x[1]) + 20*(x[2]-0.5)*(x[2]-0.5) + 10*x[3] + 5*x[4]
	case 2:
		return math.Hypot(x[0], x[1]*x[2]-1/(x[1]*x[3]))
	default:
		return math.Atan2(x[1]*x[2]-1/(x[1]*x[3]), x[0])
	}
}

// Sampler returns a sampler.
func (p Friedman) Sampler() Sampler { return &friedmanSampler{p, newRNG(p.Seed, "friedman")} }

type friedmanSampler struct {
	p Friedman
	g *rng
}

func (s *friedmanSampler) At(i uint64, x []float64) float64 {
	r := s.g.row(i)
	for c := range x {
		x[c] = r.Float64()
	}
	if s.p.Kind != 1 {
		x[0] *= 100
		x[1] = math.Pi * (40 + 520*x[1])
		x[3] = 1 + 10*x[3]
	}
	return s.p.Value(x) + s.p.Noise*r.NormFloat64()
}
