package sketch

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// RecursiveRLS halves the rows at random until Base are left, U_1 ⊂ U_2 ⊂ … ⊂
// U_H = [n]. It takes J_1 = U_1 and scores each U_{h+1} by J_h to choose J_{h+1},
// always with the same ridge λn (Carratino 2020, (5.6), after Musco and Musco, 2017).
// p = min(1, q₂ℓ̃), A = p. J_h represents only half of U_{h+1}, so scores are up to 2
// times too large. The dictionary is larger than those of the others at the same q₂,
// and more accurate. It costs 2n·M evaluations and 2n·M² operations.
type RecursiveRLS struct {
	// Oversampling is q₂ > 0, or 0 for 3.
	Oversampling float64
	// Base is the size at which halving ends, or 0 for 256.
	Base int
	// Workers is the number of goroutines, or 0 for one per processor.
	Workers int
}

// Over a source that is not resident, Sample makes two passes per level, one for the
// rows and one for the points. It holds half of the rows, see [Sampler].
func (r RecursiveRLS) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*Dictionary, error) {
	if err := checkSampling("RecursiveRLS", k, src, lambda); err != nil {
		return nil, err
	}
	q, err := orDefault("RecursiveRLS", "Oversampling", r.Oversampling, defaultOversampling, 0)
	if err != nil {
		return nil, err
	}
	if err := checkCount("RecursiveRLS", "Base", r.Base); err != nil {
		return nil, err
	}
	base := r.Base
	base = cmp.Or(base, 256)
	if src.Len() <= base { // the rows are their own dictionary
		return ExactRLS{Oversampling: q}.Sample(ctx, k, src, lambda, rng)
	}
	sizes := halvings(src.Len(), base)
	perm := rng.Perm(src.Len())
	u := prefix(perm, sizes[0])
	level := Level{Lambda: lambda, Indices: u, Weights: slices.Repeat([]float64{1}, len(u))}
	d, err := dictionaryAt(ctx, k, src, level)
	if err != nil {
		return nil, err
	}
	for _, size := range sizes[1:] {
		if d, err = r.next(ctx, k, src, d, prefix(perm, size), q, rng); err != nil {
			return nil, err
		}
	}
	d.Rows = src.Len()
	return d, nil
}

// halvings returns the sizes of U_1 … U_H.
func halvings(n, base int) []int {
	sizes := []int{n}
	for n > base && n > 1 {
		n = (n + 1) / 2
		sizes = append(sizes, n)
	}
	slices.Reverse(sizes)
	return sizes
}

// next chooses J_{h+1} from U_{h+1} = u by the scores of J_h = d.
func (r RecursiveRLS) next(ctx context.Context, k kernel.Kernel, src kernel.Source, d *Dictionary, u []int, q float64, rng *rand.Rand) (*Dictionary, error) {
	rows := src
	if len(u) < src.Len() {
		x, err := selectRows(ctx, k, src, u)
		if err != nil {
			return nil, err
		}
		rows = kernel.FromRows(x)
	}
	scores, err := d.Scores(ctx, k, rows, r.Workers)
	if err != nil {
		return nil, err
	}
	at, weights, err := Include(scores, q, rng)
	if err != nil {
		return nil, err
	}
	return dictionaryAt(ctx, k, src, Level{
		Lambda: d.Lambda, Indices: pick(u, at), Weights: weights, EffectiveDimension: sum(scores),
	})
}

// pick returns a[at[0]], a[at[1]], …
func pick[T any](a []T, at []int) []T {
	out := make([]T, len(at))
	for i, j := range at {
		out[i] = a[j]
	}
	return out
}
