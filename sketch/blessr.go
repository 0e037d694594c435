package sketch

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// BLESSR is BLESS by rejection, without repeated draws, Algorithm 4 of Carratino
// (2020). Every row enters U_h with probability β_h = min(1, q₂κ²/(λ_h n)). A row of
// U_h stays with probability p/β_h, where p = min(β_h, q₂ℓ̃). ℓ̃ is the score at λ_h,
// not at λ_{h−1} as printed, from the previous dictionary. A = p.
//
// The cost does not depend on n. It is (q₂κ²/λ)·M evaluations, times M operations.
type BLESSR struct {
	// Step is q ≥ 1.01, the factor between the λ_h, or 0 for 2.
	Step float64
	// Oversampling is q₂ > 0, the points per unit of effective dimension, and the
	// candidates per κ²/λ_h, or 0 for 3.
	Oversampling float64
	// Bound is κ² ≥ k(x, x). If 0, it is the bound of the kernel, which must be finite.
	Bound float64
	// MaxPoints is as in [BLESS]. The level that fills the dictionary keeps the points
	// of the smallest u_i/ℓ̃_i, where u_i is the random number that decides on
	// candidate i. That is a level of another q₂, see [PosteriorVariance].
	MaxPoints int
	// MaxCandidates is as in [BLESS], with one sample for all levels whenever it is
	// below n. U_h is then ⌈β_h n⌉ rows, or all.
	MaxCandidates int
	// Workers is the number of goroutines, or 0 for one per processor.
	Workers int
}

// Sample reads only the candidates. These are about 2q₂κ²/λ rows, in one pass if the source is
// not resident, see [Sampler]. Intermediate levels may be empty, but the last is not.
func (b BLESSR) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	p, bound, err := newPath("BLESSR", k, src, lambda, pathSettings{b.Step, b.Bound, b.MaxPoints, b.MaxCandidates}, b.Workers)
	if err != nil {
		return nil, err
	}
	q2, err := orDefault("BLESSR", "Oversampling", b.Oversampling, defaultOversampling, 0)
	if err != nil {
		return nil, err
	}
	n := src.Len()
	betas := make([]float64, len(p.lambdas))
	sizes := make([]int, len(p.lambdas))
	for h, lambda := range p.lambdas {
		betas[h] = min(1, q2*bound/Ridge(lambda, n))
		sizes[h] = ceil(betas[h]*float64(n), n)
	}
	candidates, limited := p.prefixes(sizes, true, rng)
	for h, beta := range betas {
		switch {
		case limited && h > 0 && len(candidates[h]) == len(candidates[h-1]):
			candidates[h], betas[h] = candidates[h-1], betas[h-1]
		case limited:
			candidates[h], _ = counted(candidates[h], src.Len())
			betas[h] = float64(len(candidates[h])) / float64(n)
		case h > 0 && beta == 1 && betas[h-1] == 1:
			candidates[h] = candidates[h-1]
		default:
			candidates[h] = thin(n, beta, rng)
		}
	}
	if last := len(candidates) - 1; len(candidates[last]) == 0 {
		candidates[last] = []int{rng.IntN(n)}
		betas[last] = 1 / float64(n)
	}
	if err := p.gather(ctx, candidates); err != nil {
		return nil, err
	}
	return p.walk(ctx, func(h int, before *drawn) (*drawn, error) {
		u, beta := candidates[h], betas[h]
		if len(u) == 0 {
			return new(drawn), nil
		}
		scores, err := p.scores(ctx, before, p.lambdas[h], u)
		if err != nil {
			return nil, err
		}
		return reject(u, scores, q2, beta, p.room(h), h == len(betas)-1, rng), nil
	})
}

// reject is lines 9 to 13. Each of the candidates u is there with probability beta. It keeps each
// with a total probability of p = min(beta, q₂ℓ̃). If these candidates are enough, q₂ becomes the
// value that fills the room. If must is set and none is kept, it draws one.
func reject(u []int, scores []float64, q2, beta float64, room room, must bool, rng *rand.Rand) *drawn {
	q := q2 / beta
	l := &drawn{want: inclusions(scores, q)}
	if l.last = room.most > 0 && l.want >= room.enough; l.last {
		q = math.MaxFloat64
	}
	at, weights, q := keep(scores, uniforms(len(u), rng), q, room.most)
	l.got = inclusions(scores, q)
	if len(at) == 0 && must {
		at, weights = drawOne(scores, rng)
	}
	for j := range weights {
		weights[j] *= beta
	}
	l.Indices, l.Weights = pick(u, at), weights
	l.chances, l.scores = weights, pick(scores, at)
	return l
}

// inclusions returns Σ min(1, q·score), the expected number of points.
func inclusions(scores []float64, q float64) float64 {
	total := 0.0
	for _, s := range scores {
		total += min(1, q*s)
	}
	return total
}
