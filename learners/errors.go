package learners

import (
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// DataError reports data that an algorithm cannot learn from, or that cannot measure
// its error. A single bad value is a *kernel.NonFiniteError, and a wrong dimension is a
// *kernel.DimensionError.
type DataError struct {
	Data   string // "training data", "validation data"
	Reason string // "there is no row"
}

func (e *DataError) Error() string { return fmt.Sprintf("learners: %s: %s", e.Data, e.Reason) }

// DivergenceError reports an iteration whose numbers grew without bound.
type DivergenceError struct {
	Algorithm string
	Iteration int
	Remedy    string // "a smaller step size", may be empty
}

func (e *DivergenceError) Error() string {
	s := fmt.Sprintf("%s: diverged in iteration %d", e.Algorithm, e.Iteration)
	if e.Remedy != "" {
		s += "; try " + e.Remedy
	}
	return s
}

// Invalid returns a *ParameterError for the hyper-parameter name, where want describes
// its domain.
func Invalid(algorithm, name string, value any, want string) error {
	return &ParameterError{In: algorithm, Parameter: name, Value: value, Want: want}
}

// Require returns a *ParameterError unless ok holds. A Validate is a cmp.Or of such checks.
func Require(ok bool, algorithm, name string, value any, want string) error {
	if ok {
		return nil
	}
	return Invalid(algorithm, name, value, want)
}

// NotNegative returns a *ParameterError unless v is 0 or more, and finite.
func NotNegative(algorithm, name string, v float64) error {
	return Require(v >= 0 && v-v == 0, algorithm, name, v, "≥ 0 and finite")
}

// AtLeast returns a *ParameterError unless v ≥ least.
func AtLeast(algorithm, name string, v, least int) error {
	return Require(v >= least, algorithm, name, v, fmt.Sprintf("≥ %d", least))
}

// CheckQuantile returns a *ParameterError unless τ is that of a quantile, or 0 for ½.
func CheckQuantile(algorithm string, tau float64) error {
	return Require(tau >= 0 && tau < 1, algorithm, "quantile", tau, "above 0 and below 1, or 0 for ½")
}

// CheckKernel returns a *ParameterError if there is no kernel.
func CheckKernel(algorithm string, k kernel.Kernel) error {
	return Require(k != nil, algorithm, "kernel", nil, "one, such as kernel.NewGaussian of the median distance")
}

// CheckDistances returns a *ParameterError unless d is a way to compute distances.
func CheckDistances(algorithm string, d kernel.Distances) error {
	ok := d == kernel.AutoDistances || d == kernel.DirectDistances || d == kernel.ExpandedDistances
	return Require(ok, algorithm, "distances", d, "kernel.AutoDistances, DirectDistances or ExpandedDistances")
}
