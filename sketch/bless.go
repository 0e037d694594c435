package sketch

import (
	"context"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// BLESS is bottom-up leverage score sampling, Algorithm 3 of the thesis. With
// λ_h = λ_0 q^−h down to λ, it draws R_h ≈ q₁κ²/λ_h rows U_h uniformly, scores
// them at λ_h by the dictionary of λ_{h−1}, and draws M_h = q₂d_h of them in
// proportion, where d_h = (n/R_h)Σ ℓ̃ estimates d_eff(λ_h). Weights are
// A_j = R_h M_h p_j/n, divided by the number of times that j was drawn.
//
// Cost, whatever n is: (q₁κ²/λ)·M evaluations, times M operations.
//
// For a λ at which FALKON is to solve, a dictionary of a λ 100 times as large
// serves well.
type BLESS struct {
	// Step is q ≥ 1.01, the factor between the λ_h; 0 stands for 2. 4 is half as
	// costly and hardly worse.
	Step float64
	// Uniform is q₁ > 0, the candidates per κ²/λ_h; 0 stands for 2.
	Uniform float64
	// Oversampling is q₂ > 0, the draws per unit of effective dimension; 0
	// stands for 3. Between 2 and 4 is useful.
	Oversampling float64
	// Start is λ_0; 0 stands for κ².
	Start float64
	// Bound is κ² ≥ k(x, x); 0 stands for the kernel's own, which must be
	// finite then.
	Bound float64
	// MaxPoints ends the path before the first level with more points; 0 stands
	// for no limit. The λ of the result says how far it came. A first level
	// above the limit is a [*BudgetError].
	MaxPoints int
	// Workers is the number of goroutines; 0 stands for one per processor.
	Workers int
}

// Sample reads the candidates only: 2q₁κ²/λ rows at most, in one pass if the
// source is not resident; see [Sampler].
func (b BLESS) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	p, bound, err := newPath("BLESS", k, src, lambda, pathSettings{b.Step, b.Start, b.Bound, b.MaxPoints}, b.Workers)
	if err != nil {
		return nil, err
	}
	q1, err := orDefault("BLESS", "Uniform", b.Uniform, defaultUniform, 0)
	if err != nil {
		return nil, err
	}
	q2, err := orDefault("BLESS", "Oversampling", b.Oversampling, defaultOversampling, 0)
	if err != nil {
		return nil, err
	}
	candidates := make([][]int, len(p.lambdas))
	for h, lambda := range p.lambdas {
		candidates[h] = drawUniform(src.Len(), ceil(q1*bound/lambda, src.Len()), rng)
	}
	if err := p.gather(ctx, candidates); err != nil {
		return nil, err
	}
	return p.walk(ctx, func(h int, before Level) (Level, error) {
		u, times := counted(candidates[h])
		scores, err := p.scores(ctx, before, p.lambdas[h], u)
		if err != nil {
			return Level{}, err
		}
		return drawMultinomial(u, times, scores, src.Len(), q2, rng), nil
	})
}

// drawUniform draws r numbers below n with repetition; r = n stands for each of
// them once, which is no less accurate.
func drawUniform(n, r int, rng *rand.Rand) []int {
	if r >= n {
		return upTo(n)
	}
	out := make([]int, r)
	for i := range out {
		out[i] = rng.IntN(n)
	}
	return out
}

// drawMultinomial is lines 7 to 10: it draws ⌈q₂d⌉ of the candidates u, each of
// which stands for as many as times says, in proportion to their scores.
func drawMultinomial(u, times []int, scores []float64, n int, q2 float64, rng *rand.Rand) Level {
	r, mass := 0, make([]float64, len(u))
	for i, s := range scores {
		r += times[i]
		mass[i] = s * float64(times[i])
	}
	d := float64(n) / float64(r) * sum(mass)
	m := ceil(q2*d, 1<<40)
	c := cumulative(mass)
	drawn := make([]int, m)
	for i := range drawn {
		drawn[i] = c.draw(rng)
	}
	at, counts := counted(drawn)
	weights := make([]float64, len(at))
	for j, i := range at {
		p := c.probability(i) / float64(times[i])
		weights[j] = float64(r) * float64(m) / float64(n) * p / float64(counts[j])
	}
	return Level{Indices: pick(u, at), Weights: weights, EffectiveDimension: d}
}
