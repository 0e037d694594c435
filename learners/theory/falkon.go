package theory

import (
	"cmp"
	"math"
)

// practicalDelta is δ of PracticalCenters.
const practicalDelta = 0.1

// PracticalCenters returns the number M of centres of FALKON by Theorem 7, with the constant
// 1 in place of 70 for uniform centres and 215 for those by leverage scores,
//
//	M = (1 + dim) log(8κ²/(λδ)),  δ = 0.1, at most n,
//
// where dim is N_∞(λ) = sup_x ‖(C+λ)^{−1/2}k_x‖², or its bound κ²/λ, for uniform centres, and the effective dimension for
// centres drawn by leverage scores. With it theory_paper_test.go finds condition
// numbers below the 17 of the theorem. For λ = n^−½ and unknown N_∞ it is about 10√n.
func PracticalCenters(n int, dim, lambda, kappaSq float64) (int, error) {
	if err := cmp.Or(checkPositive("kappa²", kappaSq), checkPositive("dim", dim)); err != nil {
		return 0, err
	}
	if !(lambda > 0 && lambda <= kappaSq) {
		return 0, invalid("lambda", lambda, "in (0, κ²]")
	}
	if n < 1 {
		return 0, invalid("n", n, "at least 1 (the number of observations)")
	}
	return ceil((1+dim)*(math.Log(8*kappaSq/lambda)-math.Log(practicalDelta)), n), nil
}
