package figure

import (
	"math"
	"slices"
	"strconv"
)

// extent is the range of an axis, the largest value on it, and where its ends are on paper.
type extent struct {
	low, high, last float64
	log             bool
	from, to        float64
}

// newExtent returns a range that has the marks of an axis, or nothing.
func newExtent(a Axis) extent {
	e := extent{low: math.Inf(1), high: math.Inf(-1), log: a.Log}
	if a.Min < a.Max {
		e.take(a.Min, a.Max)
	}
	for _, m := range a.Marks {
		e.take(m.At)
	}
	return e
}

// take widens the range so that it has values, of which some may be NaN.
func (e *extent) take(values ...float64) {
	for _, v := range values {
		if !math.IsNaN(v) {
			e.low, e.high = min(e.low, v), max(e.high, v)
		}
	}
}

// pad makes a range on which all points coincide drawable, and keeps data off the frame.
func (e *extent) pad() {
	const share = 0.03
	e.last = e.high
	switch {
	case e.low < e.high:
	case e.log:
		e.low, e.high = e.low/2, e.high*2
	default:
		d := max(0.5, 1e-3*math.Abs(e.low))
		e.low, e.high = e.low-d, e.high+d
	}
	if e.log {
		ratio := math.Pow(e.high/e.low, share)
		e.low, e.high = e.low/ratio, e.high*ratio
		return
	}
	d := share*e.high - share*e.low
	e.low, e.high = e.low-d, e.high+d
}

// share is where a value lies between the ends, from 0 to 1.
func (e *extent) share(v float64) float64 {
	if e.log {
		return math.Log(v/e.low) / math.Log(e.high/e.low)
	}
	return (v/2 - e.low/2) / (e.high/2 - e.low/2) // halves do not overflow
}

// at is where a value is on paper.
func (e *extent) at(v float64) float64 { return e.from + e.share(v)*(e.to-e.from) }

// marks are the ticks of an axis that are within its range, up to rounding. Those of minor
// ones have no text.
func (e *extent) marks(a Axis) []Mark {
	all := slices.Clone(a.Marks)
	switch {
	case a.Marks != nil:
	case e.log:
		all = logTicks(e.low, e.high)
	default:
		all = linearTicks(e.low, e.high)
	}
	return slices.DeleteFunc(all, func(m Mark) bool { share := e.share(m.At); return share < -1e-9 || share > 1+1e-9 })
}

// Ticks are the marks between two values, as a plot over them has them.
func (a Axis) Ticks(low, high float64) []Mark {
	e := extent{low: low, high: high, log: a.Log}
	if !(low < high) {
		e.pad()
	}
	return e.marks(a)
}

// linearTicks marks about four round numbers, with as many decimals as they need.
func linearTicks(low, high float64) (out []Mark) {
	rough := high/4 - low/4
	step := math.Pow(10, math.Floor(math.Log10(rough)))
	for _, times := range []float64{2, 2.5, 2} { // 2, 5, 10
		if step >= rough*(1-1e-9) {
			break
		}
		step *= times
	}
	decimals := int(max(0, -math.Floor(math.Log10(step)+1e-9)))
	form := byte('f')
	if decimals > 5 || max(math.Abs(low), math.Abs(high)) >= 1e6 {
		form, decimals = 'g', 6
	}
	for k := math.Ceil(low/step - 1e-9); k*step <= high+1e-9*step; k++ {
		out = append(out, Mark{k * step, strconv.FormatFloat(k*step+0, form, decimals, 64)}) // no -0
	}
	return out
}

// logTicks marks powers of ten, and where there are few of them also 2 and 5 times
// these. If an axis has fewer than three such numbers, it has ticks as a linear one.
func logTicks(low, high float64) (out []Mark) {
	labels := 0
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	wide := last-first > 3
	every := math.Ceil((last - first) / 8)
	for e := first; e <= last; e++ {
		for k := 1.0; k < 10; k++ {
			t := Mark{At: k * math.Pow(10, e)}
			if t.At < low*(1-1e-9) || t.At > high*(1+1e-9) {
				continue
			}
			if k == 1 && math.Mod(e, every) == 0 || !wide && (k == 2 || k == 5) {
				t.Text = strconv.FormatFloat(t.At, 'g', 6, 64)
				labels++
			}
			out = append(out, t)
		}
	}
	if labels < 3 {
		return linearTicks(low, high)
	}
	return out
}

// length is that of a mark on paper. Marks without a text are short.
func (m Mark) length() float64 {
	if m.Text == "" {
		return tickLength / 2
	}
	return tickLength
}
