package sketch

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Level is a weighted subset of the rows of a source, for one λ. Its slices are read-only.
type Level struct {
	// Lambda is the regularisation per sample, K + λnI, for which the points were chosen.
	Lambda float64
	// Indices are the numbers of the chosen rows, strictly increasing.
	Indices []int
	// Weights are the diagonal of A, one for each index, > 0, with Σ_j A_j⁻¹ k_j k_jᵀ ≈ Σ_i k_i
	// k_iᵀ. A_j is the expected number of draws of j divided by the actual number.
	Weights []float64
	// Points are the chosen rows themselves.
	Points kernel.Rows
	// EffectiveDimension estimates d_eff(λ). It is 0 if the sampler saw no score. BLESS and BLESSR estimate it from the level's own points, within 25 %. The
	// others sum the scores by which they chose.
	EffectiveDimension float64
}

// Dictionary is the result of a [Sampler]. It has the level that was asked for, and the
// levels of the path to it.
type Dictionary struct {
	Level
	// N is the number of rows n that the dictionary stands for.
	N int
	// Rows is the number of different rows of the source that the sampler evaluated or
	// chose. Rows that it skipped in a sequential source do not count.
	Rows int
	// Residual is tr(K − K_nM K_MM⁻¹ K_Mn)/n of RPCholesky, what the points leave of the kernel.
	Residual float64
	// Path holds the levels λ_1 > λ_2 > … of BLESS and BLESSR, and the last is Level.
	// It is nil for samplers that work at one λ.
	Path []Level
}

// Len returns the number of points M.
func (l *Level) Len() int { return len(l.Indices) }

// InverseWeights returns 1/A_j. These are the weights w with K_nMᵀK_nM ≈ K_MM diag(w)
// K_MM for FALKON's preconditioner, without the factor n/M that (5.22) has in print.
func (l *Level) InverseWeights() []float64 {
	w := make([]float64, len(l.Weights))
	for j, a := range l.Weights {
		w[j] = 1 / a
	}
	return w
}

// Scores returns the approximate leverage scores of the rows of src at the dictionary's
// λ, see [Generator.Scores].
func (d *Dictionary) Scores(ctx context.Context, k kernel.Kernel, src kernel.Source, workers int) ([]float64, error) {
	return d.ScoresAt(ctx, k, src, d.Lambda, workers)
}

// ScoresAt is Scores at another λ, not below the dictionary's. It takes the nearest level of the
// path, so that one path serves many λ.
func (d *Dictionary) ScoresAt(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, workers int) ([]float64, error) {
	l := d.At(lambda)
	g, err := NewGenerator(k, l.Points, l.Weights, lambda, d.N)
	if err != nil {
		return nil, err
	}
	return g.Scores(ctx, src, workers)
}

// At returns the level with points whose λ has the ratio nearest to 1 to this one.
func (d *Dictionary) At(lambda float64) *Level {
	best := &d.Level
	for h := range d.Path {
		if l := &d.Path[h]; l.Len() > 0 && math.Abs(math.Log(l.Lambda/lambda)) < math.Abs(math.Log(best.Lambda/lambda)) {
			best = l
		}
	}
	return best
}
