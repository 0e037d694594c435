package panel

import (
	"math"

	"github.com/bkbtuner/bkb/internal/simd"
)

// Float is the element type of panels, and of the rows they are packed from.
type Float = simd.Float

// Function is k(x, y) = φ(s(x, y)): a statistic of pairs, and an element-wise
// function of it.
type Function struct {
	Statistic simd.Statistic
	Func      simd.Func
	P0, P1    float64 // the parameters of Func
	Power     int     // the exponent of simd.Power

	// Weights of the coordinates in the statistic, or nil if they are all 1:
	// Σ w(x−y)², Σ w|x−y|, Σ w·x·y. Not for Mismatches. A weight that all
	// coordinates share is better put into P0.
	Weights []float64

	// Norms has φ take the cosine of the angle, s/√(s(x,x)·s(y,y)), and
	// multiplies its result with that root: for the arc-cosine kernel. The
	// statistic is Dot. The cosine of 0 is 0.
	Norms bool

	// Expand computes e^(P0·Σ w(x−y)²) from inner products of centred inputs,
	// for Squared with ExpScaled. That is faster, by up to a fifth on machines
	// that add beside multiplying and by half on others, but the exponent is
	// off by about the rounding of P0·|x|² instead of that of P0·|x−y|².
	Expand bool

	// Factor multiplies φ; 0 stands for 1. It costs nothing in products.
	Factor float64

	// Phase is added to s(x, y_j) before φ, one for each column: for random
	// features cos(2π(x·w_j + q_j)). Nil stands for 0.
	Phase []float64
}

// plan is what packing and evaluation make of a Function.
type plan struct {
	statistic simd.Statistic
	fn        simd.Func
	scaleX    []float64 // factors of coordinates, nil for 1
	scaleY    []float64
	half      bool // the sums start at −|a|²/2 − |b|²/2
	unit      bool // rows and columns are divided by their norms
	center    bool
}

func (f *Function) plan(d int, small bool) plan {
	p := plan{statistic: f.Statistic, fn: f.Func, unit: f.Norms}
	distance := f.Statistic == simd.Squared || f.Statistic == simd.Manhattan
	switch {
	case f.Weights != nil && (len(f.Weights) != d || f.Statistic == simd.Mismatches):
		panic("panel: precondition: one weight for each coordinate, and not for Mismatches")
	case f.Norms && f.Statistic != simd.Dot:
		panic("panel: precondition: norms go with inner products")
	case f.Phase != nil && (distance || f.Norms):
		panic("panel: precondition: phases go with inner products")
	}
	// Distances do not change when both sides move; in float32 that saves the
	// digits that all inputs share.
	p.center = distance && (small || f.Expand)
	if f.Expand {
		if f.Statistic != simd.Squared || f.Func != simd.ExpScaled || !(f.P0 <= 0) {
			panic("panel: precondition: Expand is for e^(−c·Σ(x−y)²)")
		}
		p.statistic, p.fn, p.half = simd.Dot, simd.Decay2, true
	} else if f.falls() {
		p.fn = simd.Fall2
	}
	p.scales(f, d)
	return p
}

// scales puts the weights into the coordinates.
func (p *plan) scales(f *Function, d int) {
	if f.Weights == nil && !f.Expand {
		return
	}
	p.scaleX = make([]float64, d)
	common := 1.0
	if f.Expand { // 2^(a·b − |a|²/2 − |b|²/2)
		common = math.Sqrt(-2 * f.P0 * math.Log2E)
	}
	for c := range p.scaleX {
		w := 1.0
		if f.Weights != nil {
			w = f.Weights[c]
		}
		if f.Statistic != simd.Manhattan {
			w = math.Sqrt(w)
		}
		p.scaleX[c] = w * common
	}
	p.scaleY = p.scaleX
}

// falls tells whether f is e^(P0·s) with s ≥ 0 ≥ P0, which is cheaper in base 2.
func (f *Function) falls() bool {
	return f.Func == simd.ExpScaled && f.Statistic != simd.Dot && f.P0 <= 0
}

func parameters[T Float](f *Function) *simd.Params[T] {
	p := &simd.Params[T]{T(f.P0), T(f.P1)}
	if f.falls() {
		p[0] = T(-f.P0 * math.Log2E)
	}
	if f.Func == simd.Power {
		p.SetPower(f.Power)
	}
	return p
}

// Rows is an n×d matrix of inputs, row i at Data[i·Stride:].
type Rows[S Float] struct {
	Data   []S
	N, D   int
	Stride int
}

func (r Rows[S]) row(i int) []S { return r.Data[i*r.Stride:][:r.D] }

func (r Rows[S]) check() {
	if r.N < 0 || r.D < 0 || r.Stride < r.D || r.N > 0 && len(r.Data) < (r.N-1)*r.Stride+r.D {
		panic("panel: precondition: rows are too short, or their stride is")
	}
}
