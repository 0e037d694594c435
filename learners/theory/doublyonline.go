package theory

import (
	"cmp"
	"math"
)

// DoublyOnline is a problem for doubly online learning (Lin and Rosasco 2019). Zero
// values of KappaSq and Capacity mean 1 and KappaSq.
//
// KappaSq bounds φ_v(x)φ_v(x'), not only k(x, x). For the features √2 cos(wᵀx + b) of
// the Gaussian kernel it is 2, where the paper says 1.
type DoublyOnline struct {
	Zeta     float64 // ζ > 0, where f_ρ = L_K^ζ g, Assumption 2, called r elsewhere
	Gamma    float64 // γ ∈ [0, 1], Assumption 3, called α elsewhere
	KappaSq  float64 // κ² ≥ 1
	Capacity float64 // c_γ > 0 of Assumption 3
}

// Steps are the step sizes η_t = StepSize·t^−StepDecay and the ridge λ of a run of T
// steps. The excess risk falls as T^−Rate, up to logarithms.
type Steps struct {
	StepSize  float64
	StepDecay float64
	Lambda    float64
	Rate      float64
}

// Fixed returns the constant step for T steps without λ, (3.6).
//
//	η = ζ/(4κ²(c_γ + κ²)(ζ + 1)) · T^{−(γ+2ζ)/(γ+2ζ+1)},  rate 2ζ/(2ζ+γ+1).
//
// The source is Corollary 3.2. Corollary 3.3 is γ = 1 and c_γ = κ². Corollary 3.4 has
// ζ = ½ in addition, with η = 1/(24κ⁴T^{2/3}).
func (p DoublyOnline) Fixed(steps int) (Steps, error) {
	p, err := p.checked(steps)
	if err != nil {
		return Steps{}, err
	}
	z := 2*p.Zeta + p.Gamma
	eta := p.Zeta / (4 * p.KappaSq * (p.Capacity + p.KappaSq) * (p.Zeta + 1))
	return Steps{StepSize: eta * math.Pow(float64(steps), -z/(z+1)), Rate: 2 * p.Zeta / (z + 1)}, nil
}

// Decaying returns decaying steps without λ, which do not depend on T. It needs γ < 1.
//
//	2ζ < 1 − γ:  η_1 = ζ/(3κ²(2c_γ + κ²)),      θ = (2ζ+γ)/(2ζ+γ+1)
//	otherwise:   η_1 = (1−γ)/(6κ²(2c_γ + κ²)),  θ = ½,  rate (1−γ)/2
//
// The source is Corollary 3.6.
func (p DoublyOnline) Decaying() (Steps, error) {
	p, err := p.checked(1)
	if err != nil {
		return Steps{}, err
	}
	if p.Gamma == 1 {
		return Steps{}, invalid("gamma", p.Gamma, "below 1 for decaying steps (Theorem 3.5)")
	}
	c := 3 * p.KappaSq * (2*p.Capacity + p.KappaSq)
	if 2*p.Zeta >= 1-p.Gamma {
		return Steps{StepSize: (1 - p.Gamma) / (2 * c), StepDecay: 0.5, Rate: (1 - p.Gamma) / 2}, nil
	}
	z := 2*p.Zeta + p.Gamma
	return Steps{StepSize: p.Zeta / c, StepDecay: z / (z + 1), Rate: 2 * p.Zeta / (z + 1)}, nil
}

// Regularised returns decaying steps and λ for T steps. It needs ζ ≤ 1, γ < 1 and
// 0 < ε ≤ 2ζ/(2ζ+γ+1), where ε is the loss in the rate.
//
//	η_t = ζ/(3κ²(3c_γ + κ²)(1 + ζ)) · t^{−(2ζ+γ)/(2ζ+γ+1)}
//	λ   = T^{−1/(2ζ+γ+1) + ε/(2ζ)},  rate 2ζ/(2ζ+γ+1) − ε.
//
// The source is Corollary 3.8.
func (p DoublyOnline) Regularised(steps int, epsilon float64) (Steps, error) {
	p, err := p.checked(steps)
	switch {
	case err != nil:
		return Steps{}, err
	case p.Zeta > 1:
		return Steps{}, invalid("zeta", p.Zeta, "at most 1 with λ, where the rate saturates (Corollary 3.8)")
	case p.Gamma == 1:
		return Steps{}, invalid("gamma", p.Gamma, "below 1 with λ (Theorem 3.7)")
	}
	z := 2*p.Zeta + p.Gamma
	if rate := 2 * p.Zeta / (z + 1); !(epsilon > 0 && epsilon <= rate) {
		return Steps{}, invalid("epsilon", epsilon, "in (0, 2ζ/(2ζ+γ+1)] (Corollary 3.8)")
	}
	return Steps{
		StepSize:  p.Zeta / (3 * p.KappaSq * (3*p.Capacity + p.KappaSq) * (1 + p.Zeta)),
		StepDecay: z / (z + 1),
		Lambda:    math.Pow(float64(steps), -1/(z+1)+epsilon/(2*p.Zeta)),
		Rate:      2*p.Zeta/(z+1) - epsilon,
	}, nil
}

// InSpace returns the constant step for T steps without λ when the features themselves
// lie in the space of the kernel, with norms ≤ c_μ.
//
//	η = 2ζ/(κ²(c_μ² + 4)(2ζ + 1)) · T^{−2ζ/(2ζ+1)},  rate 2ζ/(2ζ+1).
//
// The source is Theorem 3.9.
func (p DoublyOnline) InSpace(steps int, cMu float64) (Steps, error) {
	p, err := p.checked(steps)
	if err != nil {
		return Steps{}, err
	}
	if err := checkPositive("c_mu", cMu); err != nil {
		return Steps{}, err
	}
	rate := 2 * p.Zeta / (2*p.Zeta + 1)
	eta := rate / (p.KappaSq * (cMu*cMu + 4))
	return Steps{StepSize: eta * math.Pow(float64(steps), -rate), Rate: rate}, nil
}

func (p DoublyOnline) checked(steps int) (DoublyOnline, error) {
	p.KappaSq = cmp.Or(p.KappaSq, 1)
	p.Capacity = cmp.Or(p.Capacity, p.KappaSq)
	return p, cmp.Or(
		require(steps >= 1, "T", steps, "at least 1 (the number of steps)"),
		require(p.Gamma >= 0 && p.Gamma <= 1, "gamma", p.Gamma, "in [0, 1] (Assumption 3); use 1 if nothing is known"),
		require(p.KappaSq >= 1 && p.KappaSq <= math.MaxFloat64, "kappa²", p.KappaSq, "at least 1 (Assumption 1)"),
		checkPositive("c_gamma", p.Capacity),
		checkPositive("zeta", p.Zeta),
	)
}
