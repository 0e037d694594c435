package space

import (
	"math"
	"strconv"
)

// lattice is a set of decimal numbers. It has the multiples of a power of ten, or the
// numbers with a number of significant digits. Both are symmetric about zero.
type lattice struct {
	digits   int // significant digits, 0 for multiples of a power of ten
	exponent int // of that power
}

// multiplesAbove returns the lattice of multiples of the least power of ten ≥ q > 0.
func multiplesAbove(q float64) lattice {
	e := int(math.Ceil(math.Log10(q)))
	for math.Pow10(e) < q {
		e++
	}
	for math.Pow10(e-1) >= q {
		e--
	}
	return lattice{exponent: e}
}

// nearest returns the float64 closest to the member of l closest to x.
func (l lattice) nearest(x float64) float64 {
	if l.digits > 0 {
		return significant(x, l.digits)
	}
	if r, ok := l.nearestQuick(x); ok {
		return r
	}
	digits := decimalExponent(x) - l.exponent + 1
	switch {
	case digits > 0:
		return significant(x, digits)
	case digits == 0 && math.Abs(x) >= 5*math.Pow10(l.exponent-1):
		return math.Copysign(significant(math.Pow10(l.exponent), 1), x)
	default:
		return 0
	}
}

// nearestQuick handles powers of ten and counts that float64 represents exactly. A single
// rounding then gives the float64 closest to the decimal.
func (l lattice) nearestQuick(x float64) (r float64, ok bool) {
	if l.exponent > 0 || l.exponent < -22 {
		return 0, false
	}
	power := math.Pow10(-l.exponent)
	k := math.RoundToEven(x * power)
	return k / power, math.Abs(k) < 0x1p53
}

// above returns the least member of l that is greater than x.
func (l lattice) above(x float64) float64 {
	r := l.nearest(x)
	if r > x {
		return r
	}
	unit := l.exponent
	if l.digits > 0 {
		unit = decimalExponent(r) - l.digits
	}
	// With significant digits the gap below a power of ten is a tenth of the one above it,
	// so try the narrow gap first.
	for _, e := range []int{unit, unit + 1} {
		if next := l.nearest(r + math.Pow10(e)); next > x {
			return next
		}
	}
	return l.nearest(math.Nextafter(x, math.Inf(1)))
}

// below returns the greatest member of l that is less than x.
func (l lattice) below(x float64) float64 { return -l.above(-x) }

// significant rounds x to a number of significant decimal digits, and towards zero where
// the nearest such number overflows.
func significant(x float64, digits int) float64 {
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], x, 'e', digits-1, 64)
	r, err := strconv.ParseFloat(string(text), 64)
	if err != nil { // rounded up beyond the largest float64
		return significant(x-math.Copysign(5*math.Pow10(decimalExponent(x)-digits), x), digits)
	}
	return r
}

// decimalExponent returns the power of ten of x's first decimal digit. For zero it is the
// smallest there is.
func decimalExponent(x float64) int {
	if x == 0 {
		return -324
	}
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], x, 'e', -1, 64)
	for i, c := range text {
		if c == 'e' {
			e, _ := strconv.Atoi(string(text[i+1:])) // written by AppendFloat
			return e
		}
	}
	return -324
}

// ulp returns the gap between |x| and the next float64 above it.
func ulp(x float64) float64 {
	x = math.Abs(x)
	if x == math.MaxFloat64 {
		return x - math.Nextafter(x, 0)
	}
	return math.Nextafter(x, math.Inf(1)) - x
}
