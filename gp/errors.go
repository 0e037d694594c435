package gp

import (
	"fmt"
	"math"
	"strconv"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// ShapeError reports an argument of the wrong length.
type ShapeError = kernel.ShapeError

func shapeError(what string, got, want int) error {
	return &ShapeError{In: "gp", What: what, Got: got, Want: strconv.Itoa(want)}
}

// ValueError reports a number outside its domain, and its place. Index is −1 for a single number.
type ValueError = kernel.ValueError

func valueError(what string, index int, v float64, want string) error {
	return &ValueError{In: "gp", What: what, Index: index, Value: v, Want: want}
}

// NotPSDError reports a kernel that is not positive semi-definite on the given rows. A
// pivot, which is a variance up to noise, is negative beyond rounding.
type NotPSDError = kernel.NotPSDError

func notPSD(what string, row int, pivot float64) error {
	return &NotPSDError{In: "gp", What: what, Row: row, Pivot: pivot}
}

// maxTarget keeps squares of targets, and sums of them, finite.
const maxTarget = 1e150

// psdTolerance is how far below 0 a variance may fall by rounding, in units of the
// prior variance. Anything below is an error of the kernel.
const psdTolerance = 1e-6

// varianceFloor times the prior variance is the least posterior variance.
const varianceFloor = 1e-12

func isFinite(v float64) bool { return v-v == 0 }

// checkVariance verifies a noise variance.
func checkVariance(v float64) error {
	if !(v > 0) || !isFinite(v) {
		return valueError("noise variance", -1, v, "> 0 and finite")
	}
	return nil
}

// checkRows verifies that k can read x and that x has the type of like, which may be nil.
func checkRows(what string, k kernel.Kernel, x, like kernel.Rows) error {
	if x == nil {
		return fmt.Errorf("gp: %s: no rows", what)
	}
	if err := k.Check(x); err != nil {
		return fmt.Errorf("gp: %s: %w", what, err)
	}
	if like != nil && like.Dim() != x.Dim() {
		return fmt.Errorf("gp: %w", &kernel.DimensionError{What: what, Got: x.Dim(), Want: like.Dim()})
	}
	if err := kernel.CheckFinite(what, x); err != nil {
		return fmt.Errorf("gp: %w", err)
	}
	return nil
}

// checkMean verifies a prior mean.
func checkMean(m float64) error {
	if !isFinite(m) {
		return valueError("prior mean", -1, m, "finite")
	}
	return nil
}

// clampVariance bounds a posterior variance below, given the prior variance. It reports
// a variance that is negative beyond rounding.
func clampVariance(what string, row int, v, prior float64) (float64, error) {
	if v < -psdTolerance*prior || prior < 0 || math.IsNaN(v) {
		return 0, notPSD(what, row, min(v, prior))
	}
	return max(v, varianceFloor*prior), nil
}
