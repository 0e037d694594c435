package theory

import "math"

// UniformCenters returns the least number M of uniformly drawn centres with which
// FALKON's condition number is at most 17. Its error then falls as e^{−t/2}, with
// probability 1 − 2δ.
//
//	M ≥ 70 (1 + N_∞(λ)) log(8κ²/(λδ)),   N_∞(λ) = sup_x ‖(C+λ)^{−1/2}k_x‖² ≤ κ²/λ.
//
// nInf is N_∞(λ). If 0, it is its bound κ²/λ, as in Theorem 5, which then has the
// constants 5(1 + 14κ²/λ). It needs 0 < λ ≤ κ². M is often larger than n, see
// [PracticalCenters].
//
// The source is Theorem 7.1. Equation (4.13) lacks the square, and the bound is
// N_∞ ≤ κ²/λ, not n²/λ.
func UniformCenters(nInf, lambda, kappaSq, delta float64) (int, error) {
	log, err := centersLog(lambda, kappaSq, delta)
	if err != nil {
		return 0, err
	}
	if nInf == 0 {
		return ceil(5*(1+14*kappaSq/lambda)*log, math.MaxInt), nil
	}
	if err := checkPositive("N_inf", nInf); err != nil {
		return 0, err
	}
	return ceil(70*(1+nInf)*log, math.MaxInt), nil
}

// LeverageCenters is [UniformCenters] for centres drawn by q-approximate leverage
// scores, q ≥ 1, and the effective dimension dEff = N(λ).
//
//	M ≥ 215 (2 + q²N(λ)) log(8κ²/(λδ)).
//
// It needs λ ≥ (19κ²/n) log(n/(2δ)) and n ≥ 405κ² log(12κ²/δ).
//
// The source is Theorem 7.2. It follows from Theorem 10, which needs a smaller n, 405κ²
// ∨ 67κ² log(12κ²/δ).
func LeverageCenters(n int, dEff, q, lambda, kappaSq, delta float64) (int, error) {
	log, err := centersLog(lambda, kappaSq, delta)
	if err != nil {
		return 0, err
	}
	if err := checkPositive("d_eff", dEff); err != nil {
		return 0, err
	}
	if !(q >= 1 && q <= math.MaxFloat64) {
		return 0, invalid("q", q, "at least 1 (scores are within a factor q of the exact ones)")
	}
	if N := float64(n); N < 405*kappaSq*math.Log(12*kappaSq/delta) {
		return 0, invalid("n", n, "at least 405κ² log(12κ²/δ) (Theorem 7)")
	} else if lambda < 19*kappaSq/N*math.Log(N/(2*delta)) {
		return 0, invalid("lambda", lambda, "at least (19κ²/n) log(n/(2δ)) (Theorem 7)")
	}
	return ceil(215*(2+q*q*dEff)*log, math.MaxInt), nil
}

// practicalDelta is δ where a function has no argument for it.
const practicalDelta = 0.1

// PracticalCenters returns Theorem 7 with the constant 1 in place of 70 and 215,
//
//	M = (1 + dim) log(8κ²/(λδ)),  δ = 0.1, at most n,
//
// where dim is N_∞(λ), or κ²/λ, for uniform centres, and the effective dimension for
// centres drawn by leverage scores. With it theory_paper_test.go finds condition
// numbers below the 17 of the theorem. For λ = n^−½ and unknown N_∞ it is about 10√n.
func PracticalCenters(n int, dim, lambda, kappaSq float64) (int, error) {
	log, err := centersLog(lambda, kappaSq, practicalDelta)
	if err != nil {
		return 0, err
	}
	if err := checkPositive("dim", dim); err != nil {
		return 0, err
	}
	if n < 1 {
		return 0, invalid("n", n, "at least 1 (the number of observations)")
	}
	return ceil((1+dim)*log, n), nil
}

// centersLog returns log(8κ²/(λδ)).
func centersLog(lambda, kappaSq, delta float64) (float64, error) {
	if err := checkPositive("kappa²", kappaSq); err != nil {
		return 0, err
	}
	if !(lambda > 0 && lambda <= kappaSq) {
		return 0, invalid("lambda", lambda, "in (0, κ²]")
	}
	if err := checkDelta(delta); err != nil {
		return 0, err
	}
	return math.Log(8*kappaSq/lambda) - math.Log(delta), nil
}

// Falkon holds the hyper-parameters of FALKON.
type Falkon struct {
	Lambda     float64 // λ, in units of κ²
	Centers    int     // M ∈ [1, n]
	Iterations int     // t
}

// FALKON returns λ, M and t with which FALKON with uniform centres reaches the optimal
// rate for n ≥ 1 observations. λ is [Lambda], M is [PracticalCenters] with
// N_∞(λ) = 1/λ, and
//
//	t ≥ log(n) + 5 + 2 log(a + 3κ²),
//
// for κ² = 1 and targets in [−a/2, a/2], a > 0. The source is Theorem 8.
func FALKON(n int, g Regularity, a float64) (Falkon, error) {
	lambda, err := Lambda(n, g)
	if err != nil {
		return Falkon{}, err
	}
	if err := checkPositive("a", a); err != nil {
		return Falkon{}, err
	}
	m, err := PracticalCenters(n, 1/lambda, lambda, 1)
	if err != nil {
		return Falkon{}, err
	}
	t := ceil(math.Log(float64(n))+5+2*math.Log(a+3), math.MaxInt)
	return Falkon{Lambda: lambda, Centers: m, Iterations: t}, nil
}
