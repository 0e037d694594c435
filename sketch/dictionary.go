package sketch

import (
	"context"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Level is a weighted subset of the rows of a source, good for one λ. Its
// slices are read-only.
type Level struct {
	// Lambda is the regularisation per sample, K + λnI, for which the points
	// were chosen.
	Lambda float64
	// Indices are the numbers of the chosen rows, strictly increasing.
	Indices []int
	// Weights are the diagonal of A, one for each index, > 0:
	// Σ_j A_j⁻¹ k_j k_jᵀ ≈ Σ_i k_i k_iᵀ, where A_j is the number of draws of j
	// to expect of the sampler, over the number that there were.
	Weights []float64
	// Points are the chosen rows themselves.
	Points kernel.Rows
	// EffectiveDimension estimates d_eff(λ); 0 if the sampler saw no score.
	// BLESS and BLESSR estimate it from the level's own points, within 25 % of
	// the exact value; the others sum the scores by which they chose, which for
	// RecursiveRLS is up to 2 times too much. Above n/10, no sampling saves much.
	EffectiveDimension float64
}

// Dictionary is what a [Sampler] returns: the level that was asked for, and
// those on the way to it.
type Dictionary struct {
	Level
	// N is the number of rows n that the dictionary stands for.
	N int
	// Rows is the number of different rows of the source that the sampler looked
	// at: all that it evaluated or chose, but not rows that a source in order
	// made it skip.
	Rows int
	// Path are the levels λ_1 > λ_2 > … of BLESS and BLESSR, the last being
	// Level. It is nil for samplers that work at one λ.
	Path []Level
}

// Len returns the number of points M.
func (l *Level) Len() int { return len(l.Indices) }

// InverseWeights returns 1/A_j: the weights w with K_nMᵀK_nM ≈ K_MM diag(w) K_MM
// that FALKON's preconditioner takes, without the factor n/M that (5.22) has in
// print.
func (l *Level) InverseWeights() []float64 {
	w := make([]float64, len(l.Weights))
	for j, a := range l.Weights {
		w[j] = 1 / a
	}
	return w
}

// Generator returns the generator of the dictionary's scores at its own λ.
// Errors: as [NewGenerator].
func (d *Dictionary) Generator(k kernel.Kernel) (*Generator, error) {
	return NewGenerator(k, d.Points, d.Weights, d.Lambda, d.N)
}

// Scores returns the approximate leverage scores of the rows of src at the
// dictionary's λ; see [Generator.Scores].
func (d *Dictionary) Scores(ctx context.Context, k kernel.Kernel, src kernel.Source, workers int) ([]float64, error) {
	g, err := d.Generator(k)
	if err != nil {
		return nil, err
	}
	return g.Scores(ctx, src, workers)
}

// Truncate returns the finest dictionary of the path with at most budget
// points. Its path ends there. It fails with a [*BudgetError] if there is none:
// without a path there is nothing to choose from.
func (d *Dictionary) Truncate(budget int) (*Dictionary, error) {
	if d.Len() <= budget {
		return d, nil
	}
	fewest := d.Len()
	for h, level := range slices.Backward(d.Path) {
		if level.Len() <= budget {
			return &Dictionary{Level: level, N: d.N, Rows: d.Rows, Path: d.Path[:h+1]}, nil
		}
		fewest = min(fewest, level.Len())
	}
	return nil, &BudgetError{Budget: budget, Points: fewest}
}
