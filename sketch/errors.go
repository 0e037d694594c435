package sketch

import (
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// ParameterError reports a number outside its domain.
type ParameterError = kernel.ParameterError

// parameterError returns a *ParameterError about what, such as "BLESS".
func parameterError(what, parameter string, v float64, want string) error {
	return &ParameterError{In: "sketch: " + what, Parameter: parameter, Value: v, Want: want}
}

// EmptyError reports that there are no rows to sample from.
type EmptyError struct{ What string }

func (e *EmptyError) Error() string { return fmt.Sprintf("sketch: %s is empty", e.What) }

// FactorizationError reports a matrix K_JJ + λnA that is not positive definite even
// after the largest jitter. The kernel is then not positive semi-definite.
type FactorizationError struct {
	Size   int
	Jitter float64 // the last one tried
}

func (e *FactorizationError) Error() string {
	return fmt.Sprintf("sketch: kernel matrix of %d points is not positive definite, even with %g added to its diagonal", e.Size, e.Jitter)
}

// FeatureError reports a kernel that a random feature map does not converge to, or a
// [FeatureSpec] that does not describe a map.
type FeatureError struct {
	Map    Family
	Reason string
}

func (e *FeatureError) Error() string {
	return fmt.Sprintf("sketch: %s features: %s", e.Map, e.Reason)
}

// isPositive is false for NaN and infinities.
func isPositive(v float64) bool { return v > 0 && v-v == 0 }

func checkPositive(what, parameter string, v float64) error {
	if !isPositive(v) {
		return parameterError(what, parameter, v, "> 0 and finite")
	}
	return nil
}

// checkLambda refuses a λ unless λ and λn are positive numbers.
func checkLambda(what string, lambda float64, n int) error {
	if !isPositive(lambda) || !isPositive(Ridge(lambda, n)) {
		return parameterError(what, "Lambda", lambda, "> 0, and λn finite")
	}
	return nil
}

// orDefault returns v, or def for the zero value. It returns an error if v is below min.
func orDefault(what, parameter string, v, def, min float64) (float64, error) {
	if v == 0 {
		return def, nil
	}
	if !(v >= min) || !isPositive(v) {
		return 0, parameterError(what, parameter, v, fmt.Sprintf("≥ %g and finite, or 0 for %g", min, def))
	}
	return v, nil
}

func checkCount(what, parameter string, n int) error {
	if n < 0 {
		return parameterError(what, parameter, float64(n), "≥ 0")
	}
	return nil
}
