package theory

import (
	"cmp"
	"math"

	"github.com/bkbtuner/bkb/learners"
)

// Regularity is the knowledge of a learning problem beyond n.
type Regularity struct {
	// R is r ∈ [½, 1], the smoothness of the target in Assumption 5. ½ says only that
	// the target lies in the space of the kernel.
	R float64
	// Alpha is α ∈ [0, 1], the capacity of that space in Assumption 4. 1 means no
	// assumption, and 0 a space of finite dimension.
	Alpha float64
}

// WorstCase is r = ½, α = 1. It only assumes that the space of the kernel has a best function.
func WorstCase() Regularity { return Regularity{R: 0.5, Alpha: 1} }

func (g Regularity) check() error {
	return cmp.Or(
		require(g.R >= 0.5 && g.R <= 1, "r", g.R, "in [1/2, 1] (Assumption 5); use 1/2 if nothing is known"),
		require(g.Alpha >= 0 && g.Alpha <= 1, "alpha", g.Alpha, "in [0, 1] (Assumption 4); use 1 if nothing is known"),
	)
}

// Lambda returns λ = n^{−1/(2r+α)}, in units of κ², for n ≥ 1. With this ridge, kernel
// ridge regression, Nyström and FALKON reach the optimal rate. The sources are (2.45),
// (2.55) and Theorems 6 and 8.
func Lambda(n int, g Regularity) (float64, error) {
	if err := checkProblem(n, g); err != nil {
		return 0, err
	}
	return math.Pow(float64(n), -1/(2*g.R+g.Alpha)), nil
}

func checkProblem(n int, g Regularity) error { return cmp.Or(checkRows(n), g.check()) }

func checkRows(n int) error {
	return require(n >= 1, "n", n, "at least 1 (the number of observations)")
}

// Slope returns the slope of the least squares line of log y against log n, which is
// the measured exponent of a power law.
func Slope[T int | float64](n []T, y []float64) float64 {
	var sx, sy, sxx, sxy float64
	for i, v := range n {
		x, l := math.Log(float64(v)), math.Log(y[i])
		sx, sy, sxx, sxy = sx+x, sy+l, sxx+x*x, sxy+x*l
	}
	m := float64(len(n))
	return (m*sxy - sx*sy) / (m*sxx - sx*sx)
}

// ceil rounds v ≥ 0 up to an integer in [1, limit]. A power such as 10⁶^½ is computed
// as 1000.0000000000001, so a relative error of 1e-9 is ignored.
func ceil(v float64, limit int) int {
	v = math.Ceil(v * (1 - 1e-9))
	if v >= float64(limit) {
		return limit
	}
	return max(1, int(v))
}

func require(ok bool, name string, value any, want string) error {
	return learners.Require(ok, "theory", name, value, want)
}

func invalid(name string, value any, want string) error { return require(false, name, value, want) }

// checkPositive requires 0 < v < ∞.
func checkPositive(name string, v float64) error {
	return require(v > 0 && v <= math.MaxFloat64, name, v, "> 0 and finite")
}
