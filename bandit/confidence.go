package bandit

import (
	"errors"
	"math"
)

// Confidence is the rule for the width b of the bounds μ̃ ± b·σ̃.
type Confidence interface {
	// Beta returns b ≥ 0.
	Beta(State) float64
	// Check returns a [*ValueError] for a parameter outside its domain.
	Check() error
}

// State is what b may depend on.
type State struct {
	Step               int     // of the pull to come, from 1
	Dim                int     // d; 1 for arms that are not vectors
	NoiseVariance      float64 // λ = ξ²
	Bound              float64 // κ² ≥ k(x, x)
	EffectiveDimension float64 // Σ_s σ̃²_t(x_s)/λ
	InformationGain    float64 // Σ_s log(1 + σ̃²_{s−1}(x_s)/λ)
	Norm               float64 // F, as far as guessed and doubled; 0 if it is given
	Exact              bool    // σ̃ = σ
}

// Practical is b = √(C·d·log(2t + 1)), the default. C between 0.1 and 0.2 is
// good for rewards of about unit variance with a fitted kernel. In one or two
// dimensions it may stay at a lower maximum for hundreds of steps; 0.5 did not on
// the draw of the package comment.
type Practical struct {
	C   float64 // > 0; 0 stands for 0.15
	Dim int     // d ≥ 1; 0 stands for that of the arms
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

// Check implements Confidence.
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

// Theory is b = β̃_t/√λ with which the regret bound of thesis Theorem 21 holds,
// for rewards f(x) plus ξ-subgaussian noise, ‖f‖ ≤ F in the space of the
// kernel. With α = (1 + ε)/(1 − ε) and ξ² = λ,
//
//	b = √(α·G_t + 2 log(1/δ)) + (1 + 1/√(1−ε))·F
//
// where G_t = Σ_s log(1 + σ̃²_{s−1}(x_s)/λ) ≥ log det(I + K_t/λ)/α is computed
// from the data; for an exact policy
//
//	b = √(log det(I + K_t/λ) + 2 log(1/δ)) + F
//
// (Chowdhury and Gopalan 2017). ByDimension takes what the thesis prints, its
// misprints corrected (the root ends before F, and log(κ²t) is no upper bound
// for small λ):
//
//	b = √(2·(α(1 + log(κ²t/λ + 1))·d̃_t + log(1/δ))) + (1 + 1/√(1−ε))·F.
//
// Both are far too wide in practice: on Branin regret is 8 times that of
// Practical; Factor 0.1 does well.
type Theory struct {
	Norm    float64 // F > 0, or the first guess with Double
	Delta   float64 // δ in (0, 1), the probability to fail; 0 stands for 0.1
	Epsilon float64 // ε in (0, 1), the accuracy of σ̃; 0 stands for 0.5
	// Factor > 0 multiplies b; 0 stands for 1.
	Factor float64
	// ByDimension takes the bound by the effective dimension.
	ByDimension bool
	// Double doubles F whenever a reward contradicts it: when it lies outside
	// the bounds by more than noise does with probability 6δ/(π²t²) at most. So
	// F is doubled above ‖f‖ with probability δ at most.
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

// withNorm completes the rule that is reported.
func (t Theory) withNorm(c Confidence) Theory {
	if in, ok := c.(inputs); ok {
		c = in.Confidence
	}
	if chosen, ok := c.(Theory); ok && t.Norm == 0 && chosen.Norm > 0 {
		t.Norm = chosen.Norm
	}
	if t.Norm == 0 {
		t.Norm = 1
	}
	return t
}

// Beta returns b.
func (t Theory) Beta(s State) float64 {
	t = t.withDefaults()
	alpha, bias := Alpha(t.Epsilon), 1+1/math.Sqrt(1-t.Epsilon)
	if s.Exact {
		alpha, bias = 1, 1
	}
	norm := max(t.Norm, s.Norm)
	spread := alpha*s.InformationGain + 2*math.Log(1/t.Delta)
	if t.ByDimension {
		n := max(float64(s.Step-1), 0)
		grow := 1 + math.Log(s.Bound*n/s.NoiseVariance+1)
		spread = 2 * (alpha*grow*s.EffectiveDimension + math.Log(1/t.Delta))
	}
	// F has the units of √k, b is a number of standard deviations √λ·σ_rls.
	return t.Factor * (math.Sqrt(spread) + bias*norm)
}

// Check implements Confidence; it returns all faults.
func (t Theory) Check() error {
	t = t.withDefaults()
	return errors.Join(positive("Theory.Norm", t.Norm), fraction("Theory.Delta", t.Delta),
		fraction("Theory.Epsilon", t.Epsilon), positive("Theory.Factor", t.Factor))
}

// contradicted says whether a reward shows that F is too small.
func (t Theory) contradicted(s State, mean, sd, y float64) bool {
	t = t.withDefaults()
	t.Factor = 1
	steps := float64(max(s.Step, 1))
	tail := math.Sqrt(2 * s.NoiseVariance * math.Log(math.Pi*math.Pi*steps*steps/(3*t.Delta)))
	return math.Abs(y-mean) > t.Beta(s)*sd+tail
}

// Alpha returns α = (1 + ε)/(1 − ε), by which σ̃² may differ from σ² (thesis
// Theorem 20).
func Alpha(epsilon float64) float64 { return (1 + epsilon) / (1 - epsilon) }
