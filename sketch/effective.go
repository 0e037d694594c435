package sketch

import (
	"context"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// EffectiveDimension returns d_eff(λ) = Σ_i ℓ(i, λ) = tr K(K + λnI)⁻¹ exactly. Costs
// and errors are those of [LeverageScores].
func EffectiveDimension(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64) (float64, error) {
	scores, err := LeverageScores(ctx, k, src, lambda)
	return sum(scores), err
}

// estimate sets the level's estimate of d_eff(λ), and its Gram matrix if the path goes on.
//
// The sum of the scores by which the level was drawn is 10 to 60 % too large, because the
// dictionary before does not contain the row that is scored (E tr C(Ĉ + λ)⁻¹ ≥ tr C(C + λ)⁻¹
// for an unbiased Ĉ). The dimension of the level itself, Σ_j h_j with the hat values
// h_j = ℓ̃_j/A_j, is too small by as much, because it fits its own points.
//
// The estimate is Σ_j h_j with other weights, for which the error vanishes. Let a row
// of leverage g among the others be in the level with probability π and weight A. On
// average it has the effect of the row itself if
//
//	1 − π + π/(1 + g/A) = 1/(1 + g),  that is A = π(1 − h)/(1 − πh),
//
// where h is the hat value with this A, for which ℓ̃/π stands, corrected by its excess at
// q₂ = 3. It uses only the level's points and costs 2M³/3 operations.
func (l *drawn) estimate(k kernel.Kernel, n int) error {
	w := workspaces.Get().(*workspace)
	defer workspaces.Put(w)
	gram := w.floats(l.Len() * l.Len())
	if err := kernel.GramianTo(gram, k, l.Points); err != nil {
		return err
	}
	if !l.last {
		l.gram = slices.Clone(gram)
	}
	share := 0.85
	if l.got < l.want {
		share *= l.got / l.want // the scores are of a smaller λ
	}
	weights := make([]float64, l.Len())
	for j, pi := range l.chances {
		h := share * min(1, l.scores[j]/pi)
		weights[j] = pi * (1 - h) / (1 - pi*h)
	}
	scores, err := selfScores(gram, weights, Ridge(l.Lambda, n))
	if err != nil {
		return err
	}
	l.EffectiveDimension = 0
	for j, s := range scores {
		l.EffectiveDimension += min(1, s/weights[j])
	}
	return nil
}

func sum(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s
}
