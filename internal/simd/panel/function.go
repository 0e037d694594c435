package panel

import (
	"math"

	"github.com/bkbtuner/bkb/internal/simd"
)

// Float is the element type of panels, and of the rows they are packed from.
type Float = simd.Float

// Function is k(x, y) = φ(s(x, y)), a statistic of pairs and an element-wise function of it.
type Function struct {
	Statistic simd.Statistic
	Func      simd.Func
	P0, P1    float64 // the parameters of Func
	Power     int     // the exponent of simd.Power

	// Weights are those of the coordinates in the statistic, or nil if they are all 1. The
	// statistics are Σ w(x−y)², Σ w|x−y| and Σ w·x·y. Mismatches has none. Put a weight
	// that all coordinates share into P0.
	Weights []float64

	// Norms gives φ the cosine of the angle, s/√(s(x,x)·s(y,y)), and multiplies its result with
	// that root, for the arc-cosine kernel. The statistic is Dot. The cosine of 0 is 0.
	Norms bool

	// Expand computes Squared distances from inner products, |x|² + |y|² − 2x·y of centred
	// inputs, for the functions that [Function.Expandable] names, in up to half the time. The
	// error of the function's argument is the rounding of P0·Σ w(x−m)² instead of that of
	// P0·Σ w(x−y)². Distances below 0 count as 0.
	Expand bool

	// Reach, if it is not 0, restricts Expand to inputs with Σ w(x−m)² ≤ Reach, where m is
	// the mean of the columns. Other rows, tiles with another column, and all if these are more
	// than half, are evaluated as without Expand.
	Reach float64

	// Factor multiplies φ, and 0 means 1. It costs nothing in products.
	Factor float64

	// Phase is added to s(x, y_j) before φ, one for each column, for random features
	// cos(2π(x·w_j + q_j)). Nil means 0.
	Phase []float64
}

// plan is derived from a Function for packing and evaluation.
type plan struct {
	statistic simd.Statistic
	fn        simd.Func
	scale     []float64 // factors of coordinates
	half      bool      // the sums start at −|a|²/2 − |b|²/2
	unit      bool      // rows and columns are divided by their norms
	center    bool
}

// Expandable reports whether [Function.Expand] applies to f. It does for functions of P0
// times a squared distance that have a bounded slope at 0, which e^−√s does not have.
func (f *Function) Expandable() bool {
	if f.Statistic != simd.Squared {
		return false
	}
	switch f.Func {
	case simd.ExpScaled:
		return f.P0 <= 0
	case simd.Matern32, simd.Matern52, simd.RationalQuadratic:
		return f.P0 >= 0
	}
	return false
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
	case f.Expand && !f.Expandable():
		panic("panel: precondition: Expand is for squared distances under a smooth function")
	}
	// Distances do not change when both sides move. In float32 that saves the digits that
	// all inputs share.
	p.center = distance && (small || f.Expand)
	if f.Expand {
		p.statistic, p.half = simd.Dot, true
	}
	switch {
	case f.Expand && f.Func == simd.ExpScaled:
		p.fn = simd.Decay2
	case f.falls():
		p.fn = simd.Fall2
	}
	p.scales(f, d)
	return p
}

// scales puts the weights into the coordinates, and P0 too if distances are expanded. The
// argument of the function is then a·b − |a|²/2 − |b|²/2, or its negative.
func (p *plan) scales(f *Function, d int) {
	p.scale = make([]float64, d)
	common := 1.0
	if f.Expand {
		common = math.Sqrt(2 * f.unit())
	}
	for c := range p.scale {
		w := 1.0
		if f.Weights != nil {
			w = f.Weights[c]
		}
		if f.Statistic != simd.Manhattan {
			w = math.Sqrt(w)
		}
		p.scale[c] = w * common
	}
}

// unit returns the factor of an expanded distance. It is |P0|, times log₂ e where the
// function is computed in base 2.
func (f *Function) unit() float64 {
	if f.Func == simd.ExpScaled {
		return -f.P0 * math.Log2E
	}
	return f.P0
}

// falls reports whether f is e^(P0·s) with s ≥ 0 ≥ P0, which is cheaper in base 2.
func (f *Function) falls() bool {
	return f.Func == simd.ExpScaled && f.Statistic != simd.Dot && f.P0 <= 0
}

func parameters[T Float](f *Function) *simd.Params[T] {
	p := &simd.Params[T]{T(f.P0), T(f.P1)}
	switch {
	case f.Expand:
		p[0] = -1 // P0 is in the coordinates
	case f.falls():
		p[0] = T(-f.P0 * math.Log2E)
	}
	if f.Func == simd.Power {
		p.SetPower(f.Power)
	}
	return p
}

// Rows is an n×d matrix of inputs, with row i at Data[i·D:].
type Rows[S Float] struct {
	Data []S
	N, D int
}

func (r Rows[S]) row(i int) []S { return r.Data[i*r.D:][:r.D] }

func (r Rows[S]) check() {
	if r.N < 0 || r.D < 0 || len(r.Data) < r.N*r.D {
		panic("panel: precondition: rows are too short")
	}
}
