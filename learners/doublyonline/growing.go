package doublyonline

import (
	"math"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/sketch"
)

const (
	// When the running scale is below minScale, it is folded into the coefficients.
	minScale = 0x1p-500
	// firstFeatures is the size of the first map, and each following map is larger by a
	// quarter. About an eighth of all features are computed too early.
	firstFeatures = 1 << 10
	// blockElements limits the features of a block of rows to 8 MiB or one row.
	blockElements = 1 << 20
)

// growing is f after t steps with c outputs, where f = scale·Σ_j a_j ψ_j for j < tB.
type growing struct {
	p       Params
	d, c    int
	perStep int // B
	step    float64
	seed    uint64
	workers int

	t     int
	a     []float64 // tB×c
	scale float64   // ∏(1 − η_jλ) since it was last folded

	phi sketch.FeatureMap // has at least the needed features
	buf []float64
	out []float64
}

func (p Params) newGrowing(d, c, steps int, seed uint64, workers int) *growing {
	return &growing{
		p: p, d: d, c: c, perStep: p.perStep(), step: p.stepSize(steps), seed: seed, workers: workers,
		scale: 1, out: make([]float64, c),
	}
}

// blockRows returns the number of rows whose features may be computed at once.
func (g *growing) blockRows() int {
	return min(max(blockElements/((g.t+1)*g.perStep), 1), 64)
}

// rows makes a step for every row of x. It returns two sums, of the losses
// ‖f_t(x_t) − y_t‖² before each step and of ‖y_t‖².
func (g *growing) rows(x kernel.Rows, y []float64) (loss, zero float64, err error) {
	for at := 0; at < x.Len(); {
		end := min(at+g.blockRows(), x.Len())
		m, err := g.features(x.Slice(at, end))
		if err != nil {
			return 0, 0, learners.Shift(err, at)
		}
		for i := range end - at {
			target := y[(at+i)*g.c:][:g.c]
			loss += g.one(g.buf[i*m:][:m], target)
			for _, v := range target {
				zero += v * v
			}
		}
		at = end
	}
	return loss, zero, nil
}

// features computes all features that the rows need, and g.buf is n×m.
func (g *growing) features(x kernel.Rows) (m int, err error) {
	n := x.Len()
	need := (g.t + n) * g.perStep
	if g.phi == nil || g.phi.Features() < need {
		size := firstFeatures
		for size < need {
			size += size / 8 * 2 // even
		}
		if g.phi, err = g.p.newFeatures(g.d, size, g.seed); err != nil {
			return 0, err
		}
	}
	m = g.phi.Features()
	if len(g.buf) < n*m {
		g.buf = make([]float64, n*m)
	}
	return m, learners.ApplyFeatures(g.phi, g.buf[:n*m], x, 1, g.workers)
}

// one makes the step for a row with features φ = ψ/√m and returns the loss before it.
func (g *growing) one(phi, y []float64) (loss float64) {
	g.t++
	root := math.Sqrt(float64(len(phi)))
	g.value(phi, g.scale*root)
	eta := g.p.settings().Decayed(g.step, g.t)
	g.scale *= 1 - eta*g.p.Lambda
	if g.scale < minScale {
		g.fold()
	}
	for j, f := range g.out {
		e := f - y[j]
		loss += e * e
		g.out[j] = -eta * e / (float64(g.perStep) * g.scale) * root
	}
	at := (g.t - 1) * g.perStep
	for _, v := range phi[at : at+g.perStep] {
		for _, e := range g.out {
			g.a = append(g.a, e*v)
		}
	}
	return loss
}

// value sets g.out = factor·Σ_j a_j φ_j over the features so far.
func (g *growing) value(phi []float64, factor float64) {
	m := len(g.a) / g.c
	switch {
	case m == 0:
		clear(g.out)
	case g.c == 1:
		g.out[0] = factor * blas64.Dot(blas64.Vector{N: m, Inc: 1, Data: phi}, blas64.Vector{N: m, Inc: 1, Data: g.a})
	default:
		blas64.Gemv(blas.Trans, factor, blas64.General{Rows: m, Cols: g.c, Stride: g.c, Data: g.a},
			blas64.Vector{N: m, Inc: 1, Data: phi}, 0, blas64.Vector{N: g.c, Inc: 1, Data: g.out})
	}
}

// fold multiplies the coefficients by the running scale.
func (g *growing) fold() {
	for j := range g.a {
		g.a[j] *= g.scale
	}
	g.scale = 1
}

// weights returns w = √(tB)·scale·a, the weights for the map with tB features.
func (g *growing) weights() []float64 {
	w := make([]float64, len(g.a))
	factor := g.scale * math.Sqrt(float64(g.t*g.perStep))
	for j, v := range g.a {
		w[j] = factor * v
	}
	return w
}
