package space

import "math"

// continuousAxis is a float range without step. Its values are low, high and the members of
// its lattice strictly between. Only u = 0 decodes to low, and only u = 1 to high.
type continuousAxis struct {
	low, high   float64
	warp        warp
	lattice     lattice
	first, last float64 // members next to low and high, with first > last if there are none
}

func newContinuousAxis(low, high float64, s Scale) *continuousAxis {
	w := newWarp(low, high, s)
	a := &continuousAxis{low: low, high: high, warp: w, lattice: w.lattice()}
	a.first, a.last = a.lattice.above(low), a.lattice.below(high)
	return a
}

func (a *continuousAxis) encode(v Value) (float64, bool) {
	x, ok := v.AsFloat()
	switch {
	case !ok || !(a.low <= x && x <= a.high):
		return 0, false
	case x == a.low:
		return 0, true
	case x == a.high:
		return 1, true
	default:
		return min(max(a.warp.forward(x), tiny), belowOne), true
	}
}

func (a *continuousAxis) decode(u float64) Value {
	none := a.first > a.last
	switch {
	case u <= 0 || none && u < 0.5:
		return Float(a.low)
	case u >= 1 || none:
		return Float(a.high)
	default:
		x := min(max(a.warp.inverse(u), a.low), a.high)
		return Float(min(max(a.lattice.nearest(x), a.first), a.last))
	}
}

func (a *continuousAxis) levels() uint64 { return 0 }

// warp is the smooth map of [low, high] to [0, 1] and back, up to rounding.
type warp struct {
	low, high float64
	scale     Scale
	width     float64 // high − low, or log(high/low), +Inf where the former overflows
	logLow    float64 // log(low), used when wide
	wide      bool    // high/low > exp(wideLog), so that log(x) is used in place of log1p
}

// wideLog is the logarithm of the largest ratio high/low for which log1p and expm1 of the
// distance from low, relative to low, keep twelve digits and cannot overflow.
const wideLog = 256

func newWarp(low, high float64, s Scale) warp {
	w := warp{low: low, high: high, scale: s, width: high - low}
	if s == Linear {
		return w
	}
	w.logLow = logOf(low)
	w.width = logOf(high) - w.logLow
	w.wide = w.width > wideLog
	if !w.wide {
		w.width = math.Log1p((high - low) / low)
	}
	return w
}

// logOf is math.Log that is also right for subnormal numbers, where its assembly for some
// processors is wrong.
func logOf(x float64) float64 {
	if x < 0x1p-1022 {
		return math.Log(x*0x1p60) - 60*math.Ln2
	}
	return math.Log(x)
}

// expOf is math.Exp that is also right near both ends of float64, where its assembly for
// some processors returns 0 or +Inf too early.
func expOf(x float64) float64 {
	switch {
	case x < -700:
		return math.Exp(x+60*math.Ln2) * 0x1p-60
	case x > 700:
		return math.Exp(x-60*math.Ln2) * 0x1p60
	default:
		return math.Exp(x)
	}
}

// forward takes low < x < high to (0, 1).
func (w *warp) forward(x float64) float64 {
	switch w.scale {
	case Log:
		return w.logForward(x-w.low, x)
	case ReverseLog:
		return 1 - w.logForward(w.high-x, w.high-x+w.low)
	default:
		if math.IsInf(w.width, 0) {
			return (x/4 - w.low/4) / (w.high/4 - w.low/4)
		}
		return (x - w.low) / w.width
	}
}

// inverse takes (0, 1) to low … high.
func (w *warp) inverse(u float64) float64 {
	switch w.scale {
	case Log:
		if w.wide {
			return expOf(math.FMA(u, w.width, w.logLow))
		}
		return math.FMA(w.low, math.Expm1(u*w.width), w.low)
	case ReverseLog:
		if w.wide {
			return w.high - expOf(math.FMA(1-u, w.width, w.logLow)) + w.low
		}
		return w.high - w.low*math.Expm1((1-u)*w.width)
	default:
		if math.IsInf(w.width, 0) {
			return w.low*(1-u) + w.high*u
		}
		return math.FMA(u, w.width, w.low)
	}
}

// logForward is the coordinate of low + distance, nearly x, on the log scale.
func (w *warp) logForward(distance, x float64) float64 {
	if w.wide {
		return (logOf(x) - w.logLow) / w.width
	}
	return math.Log1p(distance/w.low) / w.width
}

// lattice returns the decimals that survive forward and inverse. Half their spacing exceeds
// the rounding errors of the two (bounds in doc.go).
func (w *warp) lattice() lattice {
	most := max(math.Abs(w.low), math.Abs(w.high))
	switch {
	case w.scale == Log:
		return lattice{digits: w.logDigits()}
	case w.scale == ReverseLog && w.wide:
		return multiplesAbove(4e-12 * most)
	case w.scale == ReverseLog:
		return multiplesAbove(max(1e-12*min(w.low, w.high-w.low), 1.8e-15*w.width*most, 8*ulp(most)))
	case math.IsInf(w.width, 0):
		return multiplesAbove(1e-12 * most * 2)
	default:
		return multiplesAbove(max(1e-12*w.width, 4*ulp(most)))
	}
}

// logDigits returns 12 significant digits. It returns up to 15 where the range is narrow,
// so that values remain to choose from. It returns 11 where the range is so wide that
// float64 logarithms do not resolve 12.
func (w *warp) logDigits() int {
	if w.wide {
		return 11
	}
	digits := 12
	for ratio := (w.high - w.low) / w.low; ratio < 1 && digits < 15; ratio *= 10 {
		digits++
	}
	return digits
}
