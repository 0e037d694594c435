package sketch

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// BLESS is bottom-up leverage score sampling, Algorithm 3 of Carratino (2020). It takes
// λ_h = λ_0 q^−h down from λ_0 = κ² to λ. At each λ_h it draws R_h ≈ q₁κ²/λ_h rows U_h
// uniformly and scores them by the dictionary of λ_{h−1}. Then it draws M_h = q₂d_h of them in
// proportion to the scores, where d_h = (n/R_h)Σ ℓ̃ estimates d_eff(λ_h). Weights are
// A_j = R_h M_h p_j/n, divided by the number of times that j was drawn.
//
// With MaxPoints the path walks down in λ until the dictionary is full. It ends at the
// first level whose scores let it expect 95 % of MaxPoints or more different points, and the
// draw stops before one that would add a point too many. As its scores and not its draw decide
// that it ends the path, the estimate Σ A⁻¹kkᵀ stays unbiased. If it needs fewer than q₂d_h
// draws, its Lambda is interpolated between the two levels, in logarithms.
//
// The cost does not depend on n. It is (q₁κ²/λ)·M evaluations, times M operations. For FALKON
// at some λ, a dictionary of a λ 100 times as large is good enough.
type BLESS struct {
	// Step is q ≥ 1.01, the factor between the λ_h, or 0 for 2.
	Step float64
	// Uniform is q₁ > 0, the candidates per κ²/λ_h, or 0 for 2.
	Uniform float64
	// Oversampling is q₂ > 0, the draws per unit of effective dimension, or 0 for 3.
	Oversampling float64
	// Bound is κ² ≥ k(x, x). If 0, it is the bound of the kernel, which must be finite.
	Bound float64
	// MaxPoints is the largest number of points, or 0 for no limit. The Lambda of the
	// result says how far the path went.
	MaxPoints int
	// MaxCandidates is the largest number of rows that Sample reads, or 0 for no limit.
	// If the sum of the R_h is larger, level h takes the first R_h rows, or all, of one uniform
	// sample of MaxCandidates rows. Rows that are too rare to be in the sample are missed.
	// MaxCandidates should be many times MaxPoints.
	MaxCandidates int
	// Workers is the number of goroutines, or 0 for one per processor.
	Workers int
}

// Sample reads only the candidates. These are at most 2q₁κ²/λ rows, in one pass if the
// source is not resident, see [Sampler].
func (b BLESS) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	p, bound, err := newPath("BLESS", k, src, lambda, pathSettings{b.Step, b.Bound, b.MaxPoints, b.MaxCandidates}, b.Workers)
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
	sizes := make([]int, len(p.lambdas))
	for h, lambda := range p.lambdas {
		sizes[h] = ceil(q1*bound/lambda, src.Len())
	}
	candidates, limited := p.prefixes(sizes, false, rng)
	for h, r := range sizes {
		switch {
		case limited:
		case h > 0 && r == src.Len() && sizes[h-1] == r:
			candidates[h] = candidates[h-1]
		default:
			candidates[h] = drawUniform(src.Len(), r, rng)
		}
	}
	if err := p.gather(ctx, candidates); err != nil {
		return nil, err
	}
	return p.walk(ctx, func(h int, before *drawn) (*drawn, error) {
		u, times := counted(candidates[h], src.Len())
		scores, err := p.scores(ctx, before, p.lambdas[h], u)
		if err != nil {
			return nil, err
		}
		return drawMultinomial(u, times, scores, src.Len(), q2, p.room(h), rng), nil
	})
}

// drawUniform draws r numbers below n with repetition. If r = n it returns each of them
// once, which is no less accurate.
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

// drawMultinomial is lines 7 to 10. It draws ⌈q₂d⌉ of the candidates u in proportion to
// their scores, where times counts how often each candidate occurs. It stops before a
// draw that would need more room than there is. If these draws are enough to fill the
// room, it continues until the room is full or ⌈8q₂d⌉ draws are made.
func drawMultinomial(u, times []int, scores []float64, n int, q2 float64, room room, rng *rand.Rand) *drawn {
	r, mass := 0, make([]float64, len(u))
	for i, s := range scores {
		r += times[i]
		mass[i] = s * float64(times[i])
	}
	d := float64(n) / float64(r) * sum(mass)
	want := ceil(q2*d, 1<<40)
	c := cumulative(mass)
	last, end := false, want
	if room.most > 0 {
		expected := 0.0
		for i := range u {
			expected += -math.Expm1(float64(want) * math.Log1p(-c.probability(i)))
		}
		if last = expected >= room.enough; last {
			end = 8 * want
		}
	}
	most := room.most
	counts, different, m := make([]int, len(u)), 0, 0
	for ; m < end; m++ {
		i := c.draw(rng)
		if counts[i] == 0 {
			if most > 0 && different == most {
				break
			}
			different++
		}
		counts[i]++
	}
	l := &drawn{want: float64(want), got: float64(m), last: last}
	among := float64(len(u)) / float64(n) // the probability that a row is a candidate
	memory := make([]float64, 3*different)
	l.Indices, l.Weights = make([]int, 0, different), memory[:0:different]
	l.chances, l.scores = memory[different:different:2*different], memory[2*different:2*different]
	for i, count := range counts {
		if count == 0 {
			continue
		}
		p := c.probability(i)
		l.Indices = append(l.Indices, u[i])
		l.Weights = append(l.Weights, float64(r)*float64(m)/float64(n)*(p/float64(times[i]))/float64(count))
		l.chances = append(l.chances, among*-math.Expm1(float64(m)*math.Log1p(-p)))
		l.scores = append(l.scores, scores[i])
	}
	return l
}
