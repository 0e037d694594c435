package theory

import (
	"cmp"
	"math"
)

// Multipass is a problem for averaged SGD over several passes (Pillaud-Vivien, Rudi and Bach
// 2018), in the symbols of the paper. Alpha there is the decay of the eigenvalues, λ_m = O(m^−α).
type Multipass struct {
	Alpha float64 // α > 1, where 1/α is the capacity elsewhere
	R     float64 // r ∈ (0, 1], where ‖Σ^{½−r}θ*‖ < ∞, Assumption (A5)
	Mu    float64 // μ ∈ [0, 1], Assumption (A3), or 0 for its least value 1/α
}

// Averaged holds the hyper-parameters of averaged SGD for n observations.
type Averaged struct {
	StepSize float64 // γ, in units of R⁻², R² ≥ ‖Φ(x)‖²
	Steps    int     // t, single observations
	Passes   float64 // t/n
	Rate     float64 // the excess risk falls as n^−Rate
	Optimal  bool    // no estimator is known to be better
}

// Hard reports whether one pass is not enough, which is so for r < (α−1)/(2α).
func (p Multipass) Hard() bool { return 2*p.R*p.Alpha+1 < p.Alpha }

// Settings returns γ = 1/4 and the number of steps t for n ≥ 1 observations.
//
//	2rα + 1 ≥ α        t = n: one pass is optimal, with γ = ¼n^{(α−1−2rα)/(2rα+1)},
//	                   rate 2rα/(2rα+1)                              (§2.2)
//	μα < 2rα + 1 < α   t = n^{α/(2rα+1)}, rate 2rα/(2rα+1)
//	2rα + 1 ≤ μα       t = (n log n)^{1/μ}, rate 2r/μ
//
// It is optimal for μ ≤ 2r and in the first case.
//
// The source is Theorem 1. The first case is §2.2, after Dieuleveut and Bach,
// Nonparametric stochastic approximation with large step-sizes, 2016.
func (p Multipass) Settings(n int) (Averaged, error) {
	p, err := p.checked(n)
	if err != nil {
		return Averaged{}, err
	}
	N, d := float64(n), 2*p.R*p.Alpha+1
	out := Averaged{StepSize: 0.25, Rate: (d - 1) / d, Optimal: p.Mu <= 2*p.R}
	t := N
	switch {
	case !p.Hard():
		out.StepSize *= math.Pow(N, (p.Alpha-d)/d)
		out.Optimal = true
	case p.Mu*p.Alpha < d:
		t = math.Pow(N, p.Alpha/d)
	default:
		t = math.Pow(N*max(1, math.Log(N)), 1/p.Mu)
		out.Rate = 2 * p.R / p.Mu
	}
	out.Steps = ceil(t, math.MaxInt)
	out.Passes = float64(out.Steps) / N
	return out, nil
}

func (p Multipass) checked(n int) (Multipass, error) {
	p.Mu = cmp.Or(p.Mu, 1/p.Alpha)
	return p, cmp.Or(
		require(p.Alpha > 1 && p.Alpha <= math.MaxFloat64, "alpha", p.Alpha, "above 1 and finite (Assumption (A4))"),
		require(p.R > 0 && p.R <= 1, "r", p.R, "in (0, 1] (Assumption (A5))"),
		require(p.Mu >= 0 && p.Mu <= 1, "mu", p.Mu, "in [0, 1] (Assumption (A3))"),
		checkRows(n),
	)
}
