package dataset

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// errNotNumber and errTooLarge are the faults that [parseNumber] finds.
var (
	errNotNumber = errors.New("is not a number")
	errTooLarge  = errors.New("is too large for a number of 64 bits")
)

// parseNumber reads a decimal number with a sign, digits, at most one point and an
// exponent. Unlike strconv it accepts no NaN, infinity, hexadecimal number or
// underscore.
func parseNumber(s []byte) (float64, error) {
	m, e, ok := scanNumber(s)
	if !ok {
		return 0, errNotNumber
	}
	if m != inexact {
		if v, ok := exact(m, e); ok {
			if s[0] == '-' {
				return -v, nil
			}
			return v, nil
		}
	}
	v, err := strconv.ParseFloat(string(s), 64)
	if math.IsInf(v, 0) {
		return 0, errTooLarge
	}
	if err != nil { // never after scanNumber
		return 0, errNotNumber
	}
	return v, nil
}

// inexact stands for a mantissa with too many digits.
const inexact = math.MaxUint64

// scanNumber returns |s| = m·10^e. m is inexact if it has more than 18 digits.
func scanNumber(s []byte) (m uint64, e int, ok bool) {
	i := 0
	if i < len(s) && (s[i] == '+' || s[i] == '-') {
		i++
	}
	digits, seen, point := 0, false, false
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		seen = true
		if digits > 0 || c != '0' {
			digits++
		}
		if digits <= 18 {
			m = 10*m + uint64(c-'0')
		}
		if point {
			e--
		}
	}
	if !seen {
		return 0, 0, false
	}
	if i < len(s) {
		x, ok := scanExponent(s[i:])
		if !ok {
			return 0, 0, false
		}
		e += x
	}
	if digits > 18 {
		m = inexact
	}
	return m, e, true
}

// scanExponent reads e±dd. Large exponents saturate.
func scanExponent(s []byte) (int, bool) {
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	negative := false
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		negative = s[0] == '-'
		s = s[1:]
	}
	if len(s) == 0 {
		return 0, false
	}
	x := 0
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		x = min(10*x+int(c-'0'), 1_000_000)
	}
	if negative {
		x = -x
	}
	return x, true
}

// exact returns m·10^e where one correctly rounded operation gives it. This holds if m
// and the power are exact as float64 (Clinger, How to read floating point numbers
// accurately, PLDI 1990).
func exact(m uint64, e int) (float64, bool) {
	switch {
	case m >= 1<<53 || e < -22 || e > 22:
		return 0, false
	case e < 0:
		return float64(m) / powersOfTen[-e], true
	default:
		return float64(m) * powersOfTen[e], true
	}
}

var powersOfTen = [...]float64{
	1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22,
}

// isInfinity reports whether s spells an infinity. The error names it.
func isInfinity(s []byte) bool {
	word := strings.ToLower(strings.TrimLeft(string(s), "+-"))
	return word == "inf" || word == "infinity"
}
