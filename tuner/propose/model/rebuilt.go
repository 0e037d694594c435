package model

import (
	"math"
	"runtime"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"gonum.org/v1/gonum/floats"
)

// maxWindow is how many observations' embeddings are kept at a rebuild.
const maxWindow = 1024

// rebuilt returns the posterior on the given inducing points after the samples:
// what observing them one by one would give if no inducing points came with
// them, up to rounding. Cost O(m³ + n m²).
func rebuilt(k *covariance, noise, mean float64, limit int, fitc bool, inducing [][]float64, samples []sample) *posterior {
	p := newPosterior(k, noise, mean, limit, fitc)
	for _, u := range inducing {
		u = p.lift(u)
		z, res := p.embed(u)
		p.grow(u, z, res)
	}
	m := p.rank()
	if m == 0 {
		return p
	}
	window := max(0, len(samples)-maxWindow)
	if len(samples) > 2*maxWindow {
		window = len(samples) // too few of them to matter
	}
	v := make([]float64, m*m)
	for i := range m {
		v[i*m+i] = 1
	}
	workers := p.workers(len(samples))
	for from := 0; from < len(samples); from += chunk {
		part := samples[from:min(from+chunk, len(samples))]
		z, res := p.embedRows(pointsOf(part, p.dim), workers)
		for i, o := range part {
			row, omega, r := z[i*m:][:m], p.precision(o, res[i]), o.y-mean
			if from+i >= window {
				p.remember(p.lift(o.x), row, omega, r)
			}
			floats.AddScaled(p.b, omega*r, row)
			floats.Scale(math.Sqrt(omega), row)
		}
		blocked.Syrk(runtime.GOMAXPROCS(0), true, blocked.New(len(part), m, z), 1, 1, blocked.New(m, m, v))
	}
	blocked.Cholesky(runtime.GOMAXPROCS(0), blocked.New(m, m, v))
	for i := range m {
		copy(p.lv[i*limit:][:i+1], v[i*m:][:i+1])
	}
	p.fresh = false
	return p
}

func pointsOf(samples []sample, dim int) *kernel.Points[float64] {
	x := kernel.NewPoints[float64](len(samples), dim, nil)
	for i, o := range samples {
		copy(x.Row(i), o.x)
	}
	return x
}
