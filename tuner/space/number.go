package space

import (
	"errors"
	"math"
	"regexp"
	"strconv"
	"strings"
)

// parseNumber reads a number in plain decimal, with the same grammar in every file and on
// the command line. It has an optional sign, digits, an optional fraction, and an optional
// exponent. Digits alone give an Int if it fits 64 bits. All else gives a Float. If reading
// fails, rule and remedy say why. The rule is empty if the text does not resemble a number.
func parseNumber(text string) (v Value, rule, remedy string) {
	if len(text) > MaxTextBytes {
		return Value{}, "a number must not be longer than " + strconv.Itoa(MaxTextBytes) + " bytes", "write fewer digits"
	}
	integer, ok := decimalSyntax(text)
	if !ok {
		rule, remedy = strangeNumber(text)
		return Value{}, rule, remedy
	}
	if integer {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return Int(n), "", ""
		}
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return Value{}, "the number is too large for a float64", "use at most 1.7976931348623157e308"
	}
	if mantissa, _, _ := strings.Cut(strings.ToLower(text), "e"); x == 0 && strings.ContainsAny(mantissa, "123456789") {
		return Value{}, "the number is too small for a float64", "use 0, or at least 5e-324"
	}
	return Float(x), "", ""
}

var decimalPattern = regexp.MustCompile(`^[+-]?((0|[1-9][0-9]*)(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?$`)

// decimalSyntax reports whether text is a decimal number and, if so, whether it is digits alone.
func decimalSyntax(text string) (integer, ok bool) {
	ok = decimalPattern.MatchString(text)
	return ok && !strings.ContainsAny(text, ".eE"), ok
}

// strangeNumber returns why a text that another program may read as a number is refused here.
func strangeNumber(text string) (rule, remedy string) {
	bare := strings.ToLower(strings.TrimLeft(text, "+-."))
	switch bare {
	case "inf", "infinity", "nan":
		return "a number must be finite", "write a finite number, or quote it if it is text"
	}
	const plain = "a number is written in plain decimal"
	digits := strings.ReplaceAll(text, "_", "")
	_, decimal := decimalSyntax(digits)
	_, err := strconv.ParseFloat(text, 64)
	_, intErr := strconv.ParseInt(text, 0, 64)
	switch {
	case decimal:
		return plain + ", without _", "write " + digits + ", or quote it if it is text"
	case len(bare) > 1 && bare[0] == '0' && strings.Trim(bare[1:2], "0123456789.e") != "":
		if accepted(err) || accepted(intErr) {
			return plain + ", not in hexadecimal, octal or binary", "write it out, or quote it if it is text"
		}
	case accepted(err) || accepted(intErr):
		return plain + ", without leading zeros", "write " + strings.TrimLeft(bare, "0") + ", or quote it if it is text"
	}
	return "", ""
}

// accepted reports whether strconv read the text as a number, even if too large.
func accepted(err error) bool { return err == nil || errors.Is(err, strconv.ErrRange) }

// toFloat turns an Int into the Float of the same value. If there is none or v is not a
// number, ok is false.
func toFloat(v Value) (Value, bool) {
	switch v.kind {
	case KindFloat:
		return v, true
	case KindInt:
		n := int64(v.bits)
		x := float64(n)
		return Float(x), x < 0x1p63 && int64(x) == n
	default:
		return Value{}, false
	}
}

// toInt turns a Float into the Int of the same value. If there is none or v is not a
// number, ok is false.
func toInt(v Value) (Value, bool) {
	switch v.kind {
	case KindInt:
		return v, true
	case KindFloat:
		x := math.Float64frombits(v.bits)
		if x != math.Trunc(x) || x < -0x1p63 || x >= 0x1p63 {
			return Value{}, false
		}
		return Int(int64(x)), true
	default:
		return Value{}, false
	}
}
