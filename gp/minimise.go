package gp

import (
	"context"
	"math"
)

// objective returns f(x) and writes its gradient. A value that is not finite says that
// x is out of bounds.
type objective func(x, grad []float64) float64

// FitTrace is one run of minimise, from one start of a [Fit].
type FitTrace struct {
	End         []float64 // log parameters, then log noise
	Value       float64   // minus the log posterior at End, +Inf if it is not finite at the start
	Values      []float64 // after every iteration
	Iterations  int
	Evaluations int
	Converged   bool // a stationary point up to rounding or Tolerance, not the iteration limit
}

// These are the settings of minimise, in the units of log likelihoods and log parameters.
const (
	lbfgsMemory     = 10
	gradTolerance   = 1e-5
	valueTolerance  = 1e-9
	longestStep     = 3.0
	sufficientSlope = 1e-4
	halvings        = 30
)

// minimise is L-BFGS on the box lo ≤ x ≤ hi by projected steps. Coordinates at a limit
// beyond which the gradient points are held. The others take a quasi-Newton step, which
// is projected to the box and halved until f falls enough (Bertsekas, Projected Newton
// methods, 1982, with the memory of Nocedal 1980). Two iterations in a row that lower f by less
// than tolerance, or only by rounding, end it.
func minimise(ctx context.Context, f objective, x0, lo, hi []float64, maxIterations int, tolerance float64) FitTrace {
	p := len(x0)
	r := FitTrace{End: project(append([]float64(nil), x0...), lo, hi)}
	grad := make([]float64, p)
	eval := func(x, g []float64) float64 {
		r.Evaluations++
		v := f(x, g)
		for _, s := range g {
			v += 0 * s // NaN if a slope is not finite
		}
		if !isFinite(v) {
			return math.Inf(1)
		}
		return v
	}
	if r.Value = eval(r.End, grad); math.IsInf(r.Value, 1) {
		return r
	}
	var mem memory
	small := 0
	for r.Iterations < maxIterations && ctx.Err() == nil {
		free := freeCoordinates(r.End, grad, lo, hi)
		if largest(grad, free) < gradTolerance {
			r.Converged = true
			return r
		}
		x, g, v, ok := step(eval, r.End, grad, r.Value, mem.direction(grad, free), lo, hi)
		if !ok && len(mem.pairs) > 0 {
			mem.pairs = nil
			continue
		}
		if !ok { // no smaller value along the gradient, because of rounding
			r.Converged = true
			return r
		}
		mem.add(r.End, x, grad, g)
		if small++; r.Value-v > max(tolerance, valueTolerance*(1+math.Abs(v))) {
			small = 0
		}
		r.End, grad, r.Value = x, g, v
		r.Iterations++
		r.Values = append(r.Values, v)
		if small >= 2 {
			r.Converged = true
			return r
		}
	}
	return r
}

// step searches along the projected direction d.
func step(eval objective, x, grad []float64, value float64, d, lo, hi []float64) (xn, gn []float64, vn float64, ok bool) {
	t := 1.0
	for _, v := range d {
		t = min(t, longestStep/math.Abs(v))
	}
	gn = make([]float64, len(x))
	for range halvings {
		xn = make([]float64, len(x))
		for i := range x {
			xn[i] = x[i] + t*d[i]
		}
		project(xn, lo, hi)
		slope, moved := 0.0, false
		for i := range x {
			slope += grad[i] * (xn[i] - x[i])
			moved = moved || xn[i] != x[i]
		}
		if !moved {
			return nil, nil, 0, false
		}
		clear(gn)
		if vn = eval(xn, gn); vn <= value+sufficientSlope*slope && vn < value {
			return xn, gn, vn, true
		}
		t /= 2
	}
	return nil, nil, 0, false
}

func project(x, lo, hi []float64) []float64 {
	for i := range x {
		x[i] = min(max(x[i], lo[i]), hi[i])
	}
	return x
}

func freeCoordinates(x, grad, lo, hi []float64) []bool {
	free := make([]bool, len(x))
	for i := range x {
		free[i] = !(x[i] <= lo[i] && grad[i] > 0 || x[i] >= hi[i] && grad[i] < 0)
	}
	return free
}

func largest(g []float64, free []bool) float64 {
	m := 0.0
	for i, v := range g {
		if free[i] {
			m = max(m, math.Abs(v))
		}
	}
	return m
}

// memory holds the last steps s and changes of the gradient y.
type memory struct{ pairs [][2][]float64 }

func (m *memory) add(x0, x1, g0, g1 []float64) {
	s, y := make([]float64, len(x0)), make([]float64, len(x0))
	for i := range s {
		s[i], y[i] = x1[i]-x0[i], g1[i]-g0[i]
	}
	if sy := dot(s, y); !(sy > 1e-10*norm(s)*norm(y)) {
		return
	}
	m.pairs = append(m.pairs, [2][]float64{s, y})
	m.pairs = m.pairs[max(0, len(m.pairs)-lbfgsMemory):]
}

// direction returns the two-loop recursion applied to the free part of the gradient.
// Without memory it returns minus the gradient, of length at most 1.
func (m *memory) direction(grad []float64, free []bool) []float64 {
	d := make([]float64, len(grad))
	for i, g := range grad {
		if free[i] {
			d[i] = -g
		}
	}
	steepest := append([]float64(nil), d...)
	alpha := make([]float64, len(m.pairs))
	scale := 0.0
	for k := len(m.pairs) - 1; k >= 0; k-- {
		s, y := mask(m.pairs[k], free)
		sy := dot(s, y)
		if sy <= 0 {
			continue
		}
		if scale == 0 {
			scale = sy / dot(y, y)
		}
		alpha[k] = dot(s, d) / sy
		axpy(-alpha[k], y, d)
	}
	if scale == 0 {
		m.pairs = nil
		scale = 1 / max(1, norm(steepest))
	}
	for i := range d {
		d[i] *= scale
	}
	for k, pair := range m.pairs {
		s, y := mask(pair, free)
		if sy := dot(s, y); sy > 0 {
			axpy(alpha[k]-dot(y, d)/sy, s, d)
		}
	}
	if down := dot(d, steepest); !(down > 1e-12*norm(d)*norm(steepest)) {
		m.pairs = nil
		n := 1 / max(1, norm(steepest))
		for i := range d {
			d[i] = steepest[i] * n
		}
	}
	return d
}

func mask(pair [2][]float64, free []bool) (s, y []float64) {
	s, y = make([]float64, len(free)), make([]float64, len(free))
	for i, f := range free {
		if f {
			s[i], y[i] = pair[0][i], pair[1][i]
		}
	}
	return s, y
}
