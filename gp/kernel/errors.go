package kernel

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/bkbtuner/bkb/internal/inorder"
)

// ErrClosed is returned by every method of an [Operator] after Close.
var ErrClosed = errors.New("kernel: operator is closed")

// ErrExited says that a function of the caller ended its goroutine, which was not the
// caller's own.
var ErrExited = inorder.ErrExited

// ErrSource is wrapped by a [SourceError] when a source breaks its own contract. It has
// fewer or more rows than Len, or a block has the wrong size.
var ErrSource = errors.New("source does not yield the rows it announced")

// ShapeError reports a vector or matrix argument of the wrong length. Every
// numeric package returns this type.
type ShapeError struct {
	In   string // the package or algorithm, such as "kernel"
	What string // the argument and its shape, such as "v (M×c)"
	Got  int    // its length
	Want string // the rule for the length
}

func (e *ShapeError) Error() string {
	return fmt.Sprintf("%s%s has length %d, want %s", prefix(e.In), e.What, e.Got, e.Want)
}

// prefix returns the start of a message about the package or algorithm in.
func prefix(in string) string {
	if in == "" {
		return ""
	}
	return in + ": "
}

// ValueError reports a value outside its domain, and its place. Every numeric package
// returns this type.
type ValueError struct {
	In    string // the package or algorithm, such as "gp"
	What  string // such as "y" or "noise variance"
	Index int    // −1 for a single value
	Value any    // a number, or text that is not one
	Want  string // its domain, such as "> 0 and finite"
}

func (e *ValueError) Error() string {
	at := ""
	if e.Index >= 0 {
		at = fmt.Sprintf(" at index %d", e.Index)
	}
	return fmt.Sprintf("%s%s is %s%s, want %s", prefix(e.In), e.What, shown(e.Value), at, e.Want)
}

// shown returns a value as it appears in a message, with text in quotes.
func shown(v any) string {
	if v == nil {
		return "missing"
	}
	if reflect.TypeOf(v).Kind() == reflect.String {
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// DimensionError reports rows of the wrong dimension d.
type DimensionError struct {
	What      string // what has the wrong dimension
	Got, Want int
}

func (e *DimensionError) Error() string {
	return fmt.Sprintf("kernel: %s has dimension %d, want %d", e.What, e.Got, e.Want)
}

// TypeError reports rows of a type that the kernel cannot read.
type TypeError struct {
	Kernel string // the kernel's name
	Got    string // the Go type of the rows
	Want   string // the types that the kernel reads
}

func (e *TypeError) Error() string {
	return fmt.Sprintf("kernel: %s kernel cannot read %s, want %s", e.Kernel, e.Got, e.Want)
}

// NonFiniteError reports a NaN or an infinity, and its place. Col is the column of the
// matrix, or −1 where columns have no meaning.
type NonFiniteError struct {
	What     string // the name of the values, such as "centers", "x", "v", "u" or "Kv"
	Row, Col int
	Value    float64
}

func (e *NonFiniteError) Error() string {
	if e.Col < 0 {
		return fmt.Sprintf("kernel: %s is %v at row %d", e.What, e.Value, e.Row)
	}
	return fmt.Sprintf("kernel: %s is %v at row %d, column %d", e.What, e.Value, e.Row, e.Col)
}

// ParameterError reports a parameter or a setting outside its domain. Every
// numeric package returns this type.
type ParameterError struct {
	In        string // the kernel, sampler or algorithm, such as "falkon"
	Parameter string // its name in the field's terms, such as "length_scale[2]"
	Value     any    // nil if it is missing
	Want      string // its domain, such as "> 0 and finite"
}

func (e *ParameterError) Error() string {
	return fmt.Sprintf("%s%s is %s, want %s", prefix(e.In), e.Parameter, shown(e.Value), e.Want)
}

func parameterError(kernel, parameter string, v float64, want string) error {
	return &ParameterError{In: "kernel: " + kernel + " kernel", Parameter: parameter, Value: v, Want: want}
}

// SpecError reports a [Spec] that does not describe a kernel.
type SpecError struct {
	Name   string // the kernel's name in the Spec
	Reason string
}

func (e *SpecError) Error() string {
	return fmt.Sprintf("kernel: cannot build kernel %q: %s", e.Name, e.Reason)
}

// IndexError reports a row index outside 0 ≤ i < Len.
type IndexError struct {
	Index, Len int
}

func (e *IndexError) Error() string {
	return fmt.Sprintf("kernel: row index %d out of range [0,%d)", e.Index, e.Len)
}

// SourceError wraps an error of reading a [Source], with the index of the first row
// that could not be read.
type SourceError struct {
	Row int
	Err error
}

func (e *SourceError) Error() string {
	return fmt.Sprintf("kernel: reading rows from %d: %v", e.Row, e.Err)
}

func (e *SourceError) Unwrap() error { return e.Err }

// AsymmetryError reports a pair with k(x_i, x_j) ≠ k(x_j, x_i).
type AsymmetryError struct {
	I, J   int
	IJ, JI float64
}

func (e *AsymmetryError) Error() string {
	return fmt.Sprintf("kernel: not symmetric: k(x_%d, x_%d) = %v but k(x_%d, x_%d) = %v",
		e.I, e.J, e.IJ, e.J, e.I, e.JI)
}

// NotPSDError reports a matrix that is not positive semi-definite. A pivot, a variance or an
// eigenvalue is negative beyond rounding. Every numeric package returns this type.
type NotPSDError struct {
	In        string  // the package or algorithm, such as "gp"
	What      string  // the matrix, the variance or the eigenvalue
	Row       int     // the row to check first
	Pivot     float64 // the number found there
	Tolerance float64 // −Tolerance was still allowed, or 0 if only rounding was
	Jitter    float64 // the largest amount that was added to the diagonal without success
	Remedy    string  // such as "a larger lambda", may be empty
}

func (e *NotPSDError) Error() string {
	var s string
	if e.Jitter > 0 {
		s = fmt.Sprintf("%s%s is not positive definite: pivot %g at row %d, even with %g added to the diagonal",
			prefix(e.In), e.What, e.Pivot, e.Row, e.Jitter)
	} else {
		s = fmt.Sprintf("%sthe kernel is not positive semi-definite: %s is %g at row %d", prefix(e.In), e.What, e.Pivot, e.Row)
	}
	if e.Tolerance > 0 {
		s += fmt.Sprintf(", want ≥ -%g", e.Tolerance)
	}
	if e.Remedy != "" {
		s += "; try " + e.Remedy
	}
	return s
}
