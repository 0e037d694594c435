package space

import "math"

// axis maps the values of one parameter to its coordinate in [0, 1] and back.
//
// For every u, decode(u) is a legal value that encode takes, and
// decode(encode(decode(u))) == decode(u) bit for bit. decode is monotone.
type axis interface {
	// encode returns v's coordinate. If v is not a legal value, ok is false.
	encode(v Value) (u float64, ok bool)
	// decode returns the value at u, 0 ≤ u ≤ 1.
	decode(u float64) Value
	// levels is the number of legal values, 0 for a continuous range.
	levels() uint64
}

// cellMiddle is the coordinate of the middle of the i-th of n equal cells.
func cellMiddle(i, n uint64) float64 { return (float64(i) + 0.5) / float64(n) }

// cellAt is the index of the cell of n that contains u. With n ≤ 1e15 it inverts
// cellMiddle, because the two roundings move u·n by less than 0.25.
func cellAt(u float64, n uint64) uint64 { return min(uint64(u*float64(n)), n-1) }

// listAxis is an ordinal or categorical. Value i of n has the i-th of n equal cells.
type listAxis struct {
	values []Value
	index  map[Value]int
}

func newListAxis(values []Value) *listAxis {
	index := make(map[Value]int, len(values))
	for i, v := range values {
		index[v] = i
	}
	return &listAxis{values: values, index: index}
}

func (a *listAxis) encode(v Value) (float64, bool) {
	i, ok := a.index[v]
	return cellMiddle(uint64(i), a.levels()), ok
}

func (a *listAxis) decode(u float64) Value { return a.values[cellAt(u, a.levels())] }

func (a *listAxis) levels() uint64 { return uint64(len(a.values)) }

// singleAxis is a range of one value. Every coordinate decodes to it, and it is encoded in
// the middle.
type singleAxis struct{ value Value }

func (a singleAxis) encode(v Value) (float64, bool) { return 0.5, v == a.value }
func (a singleAxis) decode(float64) Value           { return a.value }
func (a singleAxis) levels() uint64                 { return 1 }

// intAxis is a linear int range. Its last+1 grid points have equal cells, or,
// beyond maxCellsLinear, every stride-th of them and the last one.
type intAxis struct {
	low    int64
	step   uint64
	last   uint64 // index of the last grid point
	stride uint64 // power of ten
	cells  uint64
}

func newIntAxis(low, high int64, step uint64) *intAxis {
	a := &intAxis{low: low, step: step, last: (uint64(high) - uint64(low)) / step, stride: 1}
	for float64(a.last/a.stride) >= maxCellsLinear {
		a.stride *= 10
	}
	a.cells = a.last/a.stride + 1
	if a.last%a.stride != 0 {
		a.cells++
	}
	return a
}

func (a *intAxis) indexOf(v Value) (i uint64, ok bool) {
	n, ok := v.AsInt()
	if !ok || n < a.low {
		return 0, false
	}
	offset := uint64(n) - uint64(a.low)
	return offset / a.step, offset%a.step == 0 && offset/a.step <= a.last
}

func (a *intAxis) at(i uint64) Value { return Int(int64(uint64(a.low) + i*a.step)) }

func (a *intAxis) encode(v Value) (float64, bool) {
	i, ok := a.indexOf(v)
	if !ok {
		return 0, false
	}
	cell := i / a.stride
	if i%a.stride >= (a.stride+1)/2 {
		cell++
	}
	if i == a.last {
		cell = a.cells - 1
	}
	return cellMiddle(min(cell, a.cells-1), a.cells), true
}

func (a *intAxis) decode(u float64) Value {
	cell := cellAt(u, a.cells)
	if cell == a.cells-1 {
		return a.at(a.last)
	}
	return a.at(cell * a.stride)
}

func (a *intAxis) levels() uint64 {
	if a.last == math.MaxUint64 {
		return math.MaxUint64 // one less than the true number, a difference that no count can show
	}
	return a.last + 1
}

// logIntAxis is an int range on a log or reverse-log scale. An int k has the cell [k−½,
// k+½] measured in logarithm. Beyond maxExactLogInt only numbers of 12 significant digits,
// and the end of the range, are distinct.
type logIntAxis struct {
	low, high int64
	reverse   bool
	from      float64 // low − ½
	width     float64 // log((high + ½)/(low − ½))
}

// newLogIntAxis returns the axis of [low, high], low ≥ 1. If high exceeds low by less than
// a thousandth, logarithm and line agree to within that, and the axis is linear.
func newLogIntAxis(low, high int64, reverse bool) axis {
	if high-low <= low/1000 {
		return newIntAxis(low, high, 1)
	}
	from := float64(low) - 0.5
	return &logIntAxis{low: low, high: high, reverse: reverse, from: from, width: math.Log((float64(high) + 0.5) / from)}
}

// mirror exchanges the two ends of the range.
func (a *logIntAxis) mirror(k int64) int64 {
	if a.reverse {
		return a.high - k + a.low
	}
	return k
}

func (a *logIntAxis) mirrorCoordinate(u float64) float64 {
	if a.reverse {
		return 1 - u
	}
	return u
}

func (a *logIntAxis) encode(v Value) (float64, bool) {
	k, ok := v.AsInt()
	if !ok || k < a.low || k > a.high {
		return 0, false
	}
	return a.mirrorCoordinate(a.forward(a.mirror(k))), true
}

func (a *logIntAxis) decode(u float64) Value {
	return Int(a.mirror(a.inverse(a.mirrorCoordinate(u))))
}

func (a *logIntAxis) forward(k int64) float64 {
	switch {
	case k <= maxExactLogInt:
		return (a.position(float64(k)-0.5) + a.position(float64(k)+0.5)) / 2
	case k == a.low:
		return 0
	case k == a.high:
		return 1
	default:
		return min(max(a.position(float64(k)), 1-belowOne), belowOne)
	}
}

func (a *logIntAxis) position(x float64) float64 { return math.Log(x/a.from) / a.width }

func (a *logIntAxis) inverse(u float64) int64 {
	if u <= 0 {
		return a.low
	}
	if u >= 1 {
		return a.high
	}
	x := a.from * math.Exp(u*a.width)
	if x < maxExactLogInt+0.5 {
		return min(max(int64(math.Floor(x+0.5)), a.low), a.high)
	}
	if x >= 0x1p63 {
		x = math.Nextafter(0x1p63, 0)
	}
	return a.inside(roundInt(int64(x)))
}

// inside moves k, beyond maxExactLogInt, off the ends of the range, because only the ends
// of the axis decode to them.
func (a *logIntAxis) inside(k int64) int64 {
	if k >= a.high {
		k = roundInt(a.high)
		if k >= a.high {
			k -= lastPlace(a.high - 1)
		}
	}
	if k <= a.low {
		k = roundInt(a.low)
		if k <= a.low {
			k += lastPlace(a.low)
		}
	}
	return k
}

// lastPlace is the unit of the 12th significant digit of k, at least 1.
func lastPlace(k int64) int64 {
	unit := int64(1)
	for k/unit >= maxExactLogInt {
		unit *= 10
	}
	return unit
}

// roundInt rounds k > 0 to 12 significant digits.
func roundInt(k int64) int64 {
	unit := lastPlace(k)
	down := k - k%unit
	if k%unit >= unit-k%unit && down <= math.MaxInt64-unit && unit > 1 {
		return down + unit
	}
	return down
}

func (a *logIntAxis) levels() uint64 { return uint64(a.high) - uint64(a.low) + 1 }
