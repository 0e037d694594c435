package model

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/space"
)

// sample is one observation of a surface.
type sample struct {
	x     []float64
	y     float64
	extra float64 // own variance, above −ξ²
	// inferred says that the model itself made y of what was measured elsewhere.
	inferred bool
}

// maxWindow is how many points' embeddings a posterior keeps when it is computed
// afresh, and significant the residual, in units of the noise, from which on an input
// becomes an inducing point.
const (
	maxWindow   = 1024
	significant = 1e-3
)

// posterior is a [gp.Sparse] of samples: inputs are configurations, at full fidelity
// unless they have one coordinate more.
type posterior struct {
	sparse *gp.Sparse
	k      *kernel.Mixed
	room   int
}

// newPosterior returns the posterior on the given inducing points, in their order, after
// the samples. With fitc residuals count as noise; apart keeps equal inputs apart.
// Cost O(m³ + n m²).
func newPosterior(k *kernel.Mixed, noise, mean float64, room int, fitc, apart bool, inducing [][]float64, samples []sample) *posterior {
	p := &posterior{k: k, room: room}
	o := gp.SparseOptions{
		NoiseVariance: noise, Mean: mean, RankTolerance: 1e-10,
		Growth: gp.Growth{Room: room, Window: maxWindow, Significance: significant, Apart: apart},
	}
	if fitc {
		o.Approximation = gp.FITC
	}
	dictionary := kernel.NewPoints[float64](len(inducing), k.Dim(), nil)
	for i, u := range inducing {
		copy(dictionary.Row(i), u)
	}
	var err error
	p.sparse, err = gp.NewSparse(k, dictionary, p.data(samples...), o)
	must(err)
	return p
}

// must is for calls that fail for a programmer's mistake only: inputs are encoded
// configurations, and targets are bounded.
func must(err error) {
	if err != nil {
		panic("model: precondition: " + err.Error())
	}
}

// data is the samples as the posterior takes them.
func (p *posterior) data(samples ...sample) gp.Data {
	n, d := len(samples), p.k.Dim()
	x := kernel.NewPoints[float64](n, d, nil)
	out := gp.Data{X: x, Y: make([]float64, n), Noise: make([]float64, n), Coarse: make([]bool, n)}
	for i, s := range samples {
		copy(x.Row(i), s.x)
		out.Y[i], out.Noise[i], out.Coarse[i] = s.y, s.extra, isReport(p.k, s.x)
	}
	return out
}

// isReport tells whether an input is of a lower fidelity than outcomes.
func isReport(k *kernel.Mixed, x []float64) bool {
	d := k.Dim() - 1
	return k.FidelityLength() > 0 && len(x) > d && x[d] > 0
}

// observe adds a sample, as an inducing point where that is worth while.
func (p *posterior) observe(s sample) { must(p.sparse.Observe(p.data(s))) }

// pull adds a trial whose outcome is not known: variances shrink, means stay, and no
// outcome can be added afterwards.
func (p *posterior) pull(x []float64) { must(p.sparse.ObserveVariance(p.rows(x))) }

// fork returns a posterior that goes on from p, until p changes.
func (p *posterior) fork() *posterior {
	return &posterior{sparse: p.sparse.Fork(), k: p.k, room: p.room}
}

// rows is one input.
func (p *posterior) rows(x []float64) *kernel.Points[float64] {
	row := kernel.NewPoints[float64](1, p.k.Dim(), nil)
	copy(row.Row(0), x)
	return row
}

// lift gives rows the coordinate of the fidelity, 0 for the full one.
func (p *posterior) lift(x *kernel.Points[float64]) *kernel.Points[float64] {
	if x.Dim() == p.k.Dim() {
		return x
	}
	out := kernel.NewPoints[float64](x.Len(), p.k.Dim(), nil)
	for i := range x.Len() {
		copy(out.Row(i), x.Row(i))
	}
	return out
}

// predict returns μ and σ² of every row of x.
func (p *posterior) predict(x *kernel.Points[float64]) (mean, variance []float64) {
	mean, variance, err := p.sparse.Predict(p.lift(x))
	must(err)
	return mean, variance
}

// rank is the number of inducing points m.
func (p *posterior) rank() int { return p.sparse.Rank() }

// gain is log det V, the information that the observations have of the process.
func (p *posterior) gain() float64 { return p.sparse.LogDet() }

// noise is ξ².
func (p *posterior) noise() float64 { return p.sparse.NoiseVariance() }

// leverageBlock is how many samples are looked at together.
const leverageBlock = 512

// leverage returns the leverage score σ²ω of every sample, at most 1.
func (p *posterior) leverage(samples []sample) []float64 {
	out := make([]float64, 0, len(samples))
	for part := range slices.Chunk(samples, leverageBlock) {
		_, variance := p.predict(p.data(part...).X.(*kernel.Points[float64]))
		for i, v := range variance {
			out = append(out, min(v*(1/(p.noise()+part[i].extra)), 1))
		}
	}
	return out
}

// near tells whether an inducing point is within so many length scales of u, and of
// the same categories.
func (p *posterior) near(u []float64, distance float64) bool {
	points, _ := p.sparse.Inducing()
	rows, at := points.(*kernel.Points[float64]), p.rows(u).Row(0)
	for j := range rows.Len() {
		if s, h := p.k.Apart(at, rows.Row(j)); s < distance*distance && h == 0 {
			return true
		}
	}
	return false
}

// manyCoordinates is how many coordinates get a length scale each; with more, all of a
// sort share one.
const manyCoordinates = 64

// layout tells which coordinates of a space are ordered.
func layout(sp *space.Space) (ordered, nominal []int) {
	for i, a := range sp.Axes() {
		if a.Ordered {
			ordered = append(ordered, i)
		} else {
			nominal = append(nominal, i)
		}
	}
	return ordered, nominal
}

// priorKernel is where the first fit begins. The space has a coordinate.
func priorKernel(sp *space.Space) *kernel.Mixed {
	ordered, nominal := layout(sp)
	d := len(ordered) + len(nominal)
	count := func(n int) int {
		if d > manyCoordinates {
			return min(n, 1)
		}
		return n
	}
	theta := []float64{1}
	for range count(len(ordered)) {
		theta = append(theta, 0.35*math.Sqrt(float64(d)))
	}
	for range count(len(nominal)) {
		theta = append(theta, 1.5)
	}
	k, err := kernel.NewMixed(ordered, nominal, theta)
	must(err)
	return k
}
