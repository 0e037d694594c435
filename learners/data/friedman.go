package data

import "math"

// Friedman is the first regression problem of J. Friedman, Multivariate adaptive regression
// splines, Annals of Statistics 1991. x is uniform on [0,1]^10, of which x6 … x10 do not matter.
//
//	y = 10 sin(π x1 x2) + 20 (x3 − ½)² + 10 x4 + 5 x5 + Noise·N(0, 1)
//
// Friedman's noise is 1.
type Friedman struct {
	Noise float64
	Seed  uint64
}

// Dim returns 10.
func (Friedman) Dim() int { return 10 }

// Value returns the target without noise.
func (Friedman) Value(x []float64) float64 {
	return 10*math.Sin(math.Pi*x[0]*x[1]) + 20*(x[2]-0.5)*(x[2]-0.5) + 10*x[3] + 5*x[4]
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
	return s.p.Value(x) + s.p.Noise*r.NormFloat64()
}
