package sketch

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// leapShare is the share of the budget from which on a level scores the last one
	// (bench/docs/reproductions.md).
	leapShare = 0.15
	// leapLevel is the largest share of such a level. λ falls by steps of 10 before.
	leapLevel = 0.25
	// leapBudget is the budget from which on levels before the last end at leapLevel. Of a
	// smaller budget that share is too few points to see rare groups.
	leapBudget = 200
	// leapLast is the largest share of a small budget. The step after a larger level would fill
	// the budget by itself.
	leapLast = 0.4
	// leapLeast is the least number of points that score the last level.
	leapLeast = 30
	// leapSample is the number of candidates that tell the λ of the last level.
	leapSample = 256
	// leapExcess is how many times the budget the last level should expect, and leapMost
	// how many times it may. Its draw stops at the budget. With 2 to 3 the estimate of d_eff
	// leaves its band.
	leapExcess, leapMost = 1.05, 1.4
	// leapTries is the number of λ that are tried.
	leapTries = 8
)

// leapsFrom reports whether the level before is large enough to score the last one, and
// small enough to save time.
func (p *path) leapsFrom(before *drawn) bool {
	if !p.leaps || before == nil {
		return false
	}
	m, budget := float64(before.Len()), float64(p.budget)
	return m >= max(leapShare*budget, leapLeast) && m <= leapLast*budget
}

// leap returns λ of a last level that fills the budget, if the level before scores its
// candidates u, which occur times times. It is 0 if that λ is not far above the last λ of
// the path. Scores are upper bounds, so the path may then need less than the budget.
func (p *path) leap(ctx context.Context, before *drawn, u, times []int, q2 float64, rng *rand.Rand) (lambda float64, err error) {
	at := choose(len(u), leapSample, rng)
	some, often := make([]int, len(at)), make([]float64, len(at))
	for i, j := range at {
		some[i], often[i] = u[j], float64(times[j])
	}
	x, err := p.rows(ctx, some)
	if err != nil {
		return 0, err
	}
	n, candidates := p.src.Len(), 0
	for _, t := range times {
		candidates += t
	}
	part := float64(len(some)) / float64(len(u))
	// expected is the number of different points of a draw.
	expected := func(lambda float64) (float64, error) {
		g := &Generator{k: p.k, ridge: Ridge(lambda, n), points: before.Points, m: before.Len(), l: slices.Clone(before.gram)}
		if err := g.factorize(before.Weights); err != nil {
			return 0, err
		}
		scores, err := g.scoresOf(ctx, x, some, p.workers)
		if err != nil {
			return 0, err
		}
		draws, points := q2*float64(n)/float64(candidates), 0.0 // for each unit of score
		for i, s := range scores {
			points -= math.Expm1(-draws*s*often[i]) / part
		}
		return points, nil
	}
	least := 10 * p.lambdas[len(p.lambdas)-1]
	budget := float64(p.budget)
	want := math.Log(budget * math.Sqrt(leapExcess*leapMost))
	// The number of points is taken as a power of λ between high and low, or beyond low.
	high, highPoints := math.Log(before.Lambda), math.Log(float64(before.Len()))
	low, lowPoints := math.Inf(-1), 0.0
	next := high - 2*(want-highPoints)
	for range leapTries {
		lambda = math.Exp(next)
		if !(lambda >= least) {
			return 0, nil
		}
		points, err := expected(lambda)
		switch {
		case err != nil:
			return 0, err
		case points >= leapExcess*budget && points <= leapMost*budget:
			return lambda, nil
		case points > budget:
			low, lowPoints = next, math.Log(points)
		default:
			slope := (math.Log(points) - highPoints) / (high - next)
			high, highPoints = next, math.Log(points)
			if math.IsInf(low, -1) { // at most a factor of 1000 at once
				next -= min(max((want-highPoints)/max(slope, 0.05), 0.5), 7)
				continue
			}
		}
		share := (want - highPoints) / (lowPoints - highPoints)
		next = high + (low-high)*min(max(share, 0.1), 0.9)
	}
	if math.IsInf(low, -1) {
		return 0, nil
	}
	return math.Exp(low), nil
}
