package kernel_test

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Messages of the errors that all numeric packages share name the place, the value and
// the rule.
func TestSharedErrorMessages(t *testing.T) {
	type solver string
	for _, c := range []struct {
		err  error
		want string
	}{
		{&kernel.ShapeError{In: "gp", What: "y", Got: 3, Want: "4"}, "gp: y has length 3, want 4"},
		{&kernel.ShapeError{What: "y", Got: 3, Want: "n"}, "y has length 3, want n"},
		{&kernel.ValueError{In: "gp", What: "y", Index: 2, Value: math.NaN(), Want: "finite"}, "gp: y is NaN at index 2, want finite"},
		{&kernel.ValueError{In: "krr", What: "lambda", Index: -1, Value: "x", Want: "a number"}, `krr: lambda is "x", want a number`},
		{&kernel.ParameterError{In: "falkon", Parameter: "kernel", Want: "one"}, "falkon: kernel is missing, want one"},
		{&kernel.ParameterError{In: "falkon", Parameter: "solver", Value: solver(""), Want: "cg"}, `falkon: solver is "", want cg`},
		{&kernel.ParameterError{In: "sgdrf", Parameter: "lambda", Value: -0.5, Want: "≥ 0"}, "sgdrf: lambda is -0.5, want ≥ 0"},
		{
			&kernel.NotPSDError{In: "kernel", What: "the smallest eigenvalue of K", Row: 1, Pivot: -2, Tolerance: 1e-9},
			"kernel: the kernel is not positive semi-definite: the smallest eigenvalue of K is -2 at row 1, want ≥ -1e-09",
		},
		{
			&kernel.NotPSDError{In: "krr", What: "K + λnI", Row: 4, Pivot: -2, Jitter: 1e-6, Remedy: "a larger λ"},
			"krr: K + λnI is not positive definite: pivot -2 at row 4, even with 1e-06 added to the diagonal; try a larger λ",
		},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
