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
// where dim is N_∞(λ) = sup_x ‖(C+λ)^{−1/2}k_x‖², or its bound κ²/λ, for uniform centres, and the
// effective dimension for centres drawn by leverage scores. For λ = n^−½ and unknown N_∞ it is
// about 10√n.
func PracticalCenters(n int, dim, lambda, kappaSq float64) (int, error) {
	if err := cmp.Or(
		checkPositive("kappa²", kappaSq), checkPositive("dim", dim),
		require(lambda > 0 && lambda <= kappaSq, "lambda", lambda, "in (0, κ²]"), checkRows(n),
	); err != nil {
		return 0, err
	}
	return ceil((1+dim)*(math.Log(8*kappaSq/lambda)-math.Log(practicalDelta)), n), nil
}
