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
	extra float64 // additional variance, above −ξ²
	// inferred reports that the model computed y from a measurement elsewhere.
	inferred bool
}

// maxWindow is how many points' embeddings a posterior keeps when it is computed afresh.
// significant is the residual, in units of the noise, from which on an input becomes an
// inducing point.
const (
	maxWindow   = 1024
	significant = 1e-3
)

// posterior is a [gp.Sparse] of samples. Inputs are configurations, at full fidelity unless
// they have one more coordinate.
type posterior struct {
	*gp.Sparse
	k    *kernel.Mixed
	room int
}

// newPosterior returns the posterior on the given inducing points, in their order, after
// the samples. With fitc residuals count as noise. The cost is O(m³ + n m²).
func newPosterior(k *kernel.Mixed, noise, mean float64, room int, fitc bool, inducing [][]float64, samples []sample) *posterior {
	p := &posterior{k: k, room: room}
	o := gp.SparseOptions{
		NoiseVariance: noise, Mean: mean, RankTolerance: 1e-10,
		Growth: gp.Growth{Room: room, Window: maxWindow, Significance: significant},
	}
	if fitc {
		o.Approximation = gp.FITC
	}
	dictionary := kernel.NewPoints[float64](len(inducing), k.Dim(), nil)
	for i, u := range inducing {
		copy(dictionary.Row(i), u)
	}
	var err error
	p.Sparse, err = gp.NewSparse(k, dictionary, p.data(samples...), o)
	must(err)
	return p
}

// must panics on errors that only a programming mistake can cause. Inputs are encoded
// configurations, and targets are bounded.
func must(err error) {
	if err != nil {
		panic("model: precondition: " + err.Error())
	}
}

// data returns the samples in the form of package gp.
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

// isReport reports whether an input has a lower fidelity than outcomes.
func isReport(k *kernel.Mixed, x []float64) bool {
	d := k.Dim() - 1
	return k.FidelityLength() > 0 && len(x) > d && x[d] > 0
}

// observe adds a sample, as an inducing point if it adds enough.
func (p *posterior) observe(s sample) { must(p.Observe(p.data(s))) }

// pull adds a trial with unknown outcome. Variances shrink, means stay, and no outcome can
// be added afterwards.
func (p *posterior) pull(x []float64) {
	must(p.ObserveVariance(p.lift(kernel.NewPoints(1, len(x), x))))
}

// fork returns a posterior that starts from p. It is valid until p changes.
func (p *posterior) fork() *posterior {
	return &posterior{p.Fork(), p.k, p.room}
}

// detach returns a posterior that predicts as p does now and does not change with it.
func (p *posterior) detach() *posterior {
	return &posterior{p.Detach(), p.k, p.room}
}

// lift adds the coordinate of the fidelity to rows, 0 for the full one.
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
	mean, variance, err := p.Predict(p.lift(x))
	must(err)
	return mean, variance
}

// means returns μ of every row of x.
func (p *posterior) means(x *kernel.Points[float64]) []float64 {
	mean, err := p.Means(p.lift(x))
	must(err)
	return mean
}

// leverageBlock is how many samples are processed together.
const leverageBlock = 512

// leverage returns the leverage score σ²ω of every sample, at most 1.
func (p *posterior) leverage(samples []sample) []float64 {
	out := make([]float64, 0, len(samples))
	for part := range slices.Chunk(samples, leverageBlock) {
		_, variance := p.predict(p.data(part...).X.(*kernel.Points[float64]))
		for i, v := range variance {
			out = append(out, min(v*(1/(p.NoiseVariance()+part[i].extra)), 1))
		}
	}
	return out
}

// meanVariance is the prior variance of a process' mean, in units of targets. The average of the
// targets so far is no estimate of it, because suggestions are better than typical points. The
// mean of success is known from the labels.
const meanVariance = 1

// fewConfigurations is the largest number of configurations of a space whose order the model does
// not use. Each is soon measured, and one that is better alone would be taken for noise between
// its neighbours.
const fewConfigurations = 8

// layout returns which coordinates of a space are ordered.
func layout(sp *space.Space) (ordered, nominal []int) {
	few := sp.Cardinality() <= fewConfigurations
	for i, a := range sp.Axes() {
		if a.Ordered && !few {
			ordered = append(ordered, i)
		} else {
			nominal = append(nominal, i)
		}
	}
	return ordered, nominal
}

// priorKernel returns the kernel with which the first fit begins. The space has a coordinate.
func priorKernel(sp *space.Space) *kernel.Mixed {
	ordered, nominal := layout(sp)
	d := len(ordered) + len(nominal)
	theta := []float64{1}
	for range ordered {
		theta = append(theta, 0.35*math.Sqrt(float64(d)))
	}
	for range nominal {
		theta = append(theta, 1.5)
	}
	k, err := kernel.NewMixed(ordered, nominal, theta)
	must(err)
	return k
}
