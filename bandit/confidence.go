package bandit

import (
	"errors"
	"math"
)

// Confidence is the rule for the width b of the bounds μ̃ ± b·σ̃. Package
// tuner/propose/acquire has the one of the service.
type Confidence interface {
	// Beta returns b ≥ 0.
	Beta(State) float64
	// Check returns a [*ValueError] for a parameter outside its domain.
	Check() error
}

// State holds the quantities on which b may depend.
type State struct {
	Step               int     // of the next pull, from 1
	Dim                int     // d, or 1 for arms that are not vectors
	NoiseVariance      float64 // λ = ξ²
	Bound              float64 // κ² ≥ k(x, x)
	EffectiveDimension float64 // Σ_s σ̃²_t(x_s)/λ
	InformationGain    float64 // Σ_s log(1 + σ̃²_{s−1}(x_s)/λ)
	Norm               float64 // F where rewards have doubled it, or 0
	Exact              bool    // σ̃ = σ
}

// Practical is b = √(C·d·log(2t + 1)), the default. C between 0.1 and 0.2 is good for rewards of
// about unit variance with a fitted kernel. In one or two dimensions it may stay at a lower
// maximum for hundreds of steps (bench/docs/experiments.md, "Bandits of the library").
type Practical struct {
	C   float64 // > 0, or 0 for 0.15
	Dim int     // d ≥ 1, or 0 for that of the arms
}

// Beta returns b.
func (p Practical) Beta(s State) float64 {
	c, d := p.C, p.Dim
	if c == 0 {
		c = 0.15
	}
	if d == 0 {
		d = max(s.Dim, 1)
	}
	return math.Sqrt(c * float64(d) * math.Log(2*float64(s.Step)+1))
}

func (p Practical) Check() error {
	if p.C != 0 {
		if err := positive("Practical.C", p.C); err != nil {
			return err
		}
	}
	if p.Dim < 0 {
		return valueError("Practical.Dim", -1, float64(p.Dim), "≥ 0")
	}
	return nil
}

// Theory is b = β̃_t/√λ, for which the regret bound of Theorem 21 of Carratino (2020)
// holds. Rewards are f(x) plus ξ-subgaussian noise, with ‖f‖ ≤ F in the space of the
// kernel. With α = (1 + ε)/(1 − ε) and ξ² = λ,
//
//	b = √(α·G_t + 2 log(1/δ)) + (1 + 1/√(1−ε))·F
//
// where G_t = Σ_s log(1 + σ̃²_{s−1}(x_s)/λ) ≥ log det(I + K_t/λ)/α. For an exact policy α = 1, and
// F has the factor 1 (Chowdhury and Gopalan 2017). ByDimension takes the printed form without its
// misprints, with 2α(1 + log(κ²t/λ + 1))·d̃_t in place of α·G_t.
type Theory struct {
	Norm        float64 // F > 0, or the first guess of it
	Delta       float64 // δ in (0, 1), the probability of failure, or 0 for 0.1
	Epsilon     float64 // ε in (0, 1), the accuracy of σ̃, or 0 for 0.5
	Factor      float64 // of b, > 0, or 0 for 1
	ByDimension bool
	// Double doubles F whenever a reward contradicts it, being farther outside the bounds than
	// noise is with probability 6δ/(π²t²) (Carratino 2020, §7.1.3).
	Double bool
}

func (t Theory) withDefaults() Theory {
	if t.Delta == 0 {
		t.Delta = 0.1
	}
	if t.Epsilon == 0 {
		t.Epsilon = 0.5
	}
	if t.Factor == 0 {
		t.Factor = 1
	}
	return t
}

// reported is the rule for TheoryBeta.
func reported(c Confidence) Theory {
	if chosen, ok := c.(Theory); ok && chosen.Norm > 0 {
		return Theory{Norm: chosen.Norm}
	}
	return Theory{Norm: 1}
}

// Beta returns b.
func (t Theory) Beta(s State) float64 {
	t = t.withDefaults()
	alpha, bias := Alpha(t.Epsilon), 1+1/math.Sqrt(1-t.Epsilon)
	if s.Exact {
		alpha, bias = 1, 1
	}
	spread := alpha*s.InformationGain + 2*math.Log(1/t.Delta)
	if t.ByDimension {
		n := max(float64(s.Step-1), 0)
		grow := 1 + math.Log(s.Bound*n/s.NoiseVariance+1)
		spread = 2 * (alpha*grow*s.EffectiveDimension + math.Log(1/t.Delta))
	}
	// F has the units of √k, and b is a number of standard deviations √λ·σ_rls.
	return t.Factor * (math.Sqrt(spread) + bias*max(t.Norm, s.Norm))
}

// contradicted reports whether a reward shows that F is too small.
func (t Theory) contradicted(s State, mean, sd, y float64) bool {
	t = t.withDefaults()
	t.Factor = 1
	steps := float64(max(s.Step, 1))
	tail := math.Sqrt(2 * s.NoiseVariance * math.Log(math.Pi*math.Pi*steps*steps/(3*t.Delta)))
	return math.Abs(y-mean) > t.Beta(s)*sd+tail
}

// Check implements Confidence. It returns all faults.
func (t Theory) Check() error {
	t = t.withDefaults()
	return errors.Join(positive("Theory.Norm", t.Norm), fraction("Theory.Delta", t.Delta),
		fraction("Theory.Epsilon", t.Epsilon), positive("Theory.Factor", t.Factor))
}

// Alpha returns α = (1 + ε)/(1 − ε), the factor by which σ̃² may differ from σ²
// (Carratino 2020, Theorem 20).
func Alpha(epsilon float64) float64 { return (1 + epsilon) / (1 - epsilon) }
