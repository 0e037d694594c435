// Package metric reads and writes measured numbers on command lines, in CSV cells, and in
// the output of training scripts.
//
// A number is plain decimal, or one of the words nan, inf, +inf, -inf (in any case, also
// infinity). Hexadecimal, underscores and numbers beyond float64 are refused, because
// they are mostly mistakes.
//
//	NAME=V          one value
//	NAME=V,V,…      replicates
//	NAME=V±S        a value with its standard error; also V+-S
package metric

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseNumber reads a number.
func ParseNumber(text string) (float64, error) {
	switch strings.ToLower(text) {
	case "nan":
		return math.NaN(), nil
	case "inf", "+inf", "infinity", "+infinity":
		return math.Inf(1), nil
	case "-inf", "-infinity":
		return math.Inf(-1), nil
	}
	if text == "" || strings.Trim(text, "0123456789.eE+-") != "" {
		return 0, fmt.Errorf("%.40q is not a number; write plain decimal such as 0.25 or 1e-3, or nan, inf, -inf", text)
	}
	x, err := strconv.ParseFloat(text, 64)
	switch {
	case math.IsInf(x, 0):
		return 0, fmt.Errorf("%.40q is too large for a float64; write inf if that is what is meant", text)
	case err != nil:
		return 0, fmt.Errorf("%.40q is not a number; write plain decimal such as 0.25 or 1e-3, or nan, inf, -inf", text)
	}
	return x, nil
}

// FormatNumber writes a number so that ParseNumber reads it back bit for bit
// (any NaN as NaN).
func FormatNumber(x float64) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
