package learners

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

// Centers are M rows of the training data, in increasing order of their indices. All
// indices differ, but equal rows stay equal centres.
type Centers struct {
	Points  kernel.Rows
	Indices []int
	// Weights are w_j > 0 with K_nMᵀK_nM ≈ K_MM diag(w) K_MM. The sampler gives 1/A_j,
	// which is n/M if all rows are alike.
	Weights []float64
	// Dictionary is the sampler's result, with the path of BLESS.
	Dictionary *sketch.Dictionary
	// Notes say what a sampler drew.
	Notes []string
}

// Len returns M.
func (c *Centers) Len() int { return len(c.Indices) }

// Sampling says how centres are chosen for a fit.
type Sampling struct {
	// Sampler is nil for uniform centres.
	Sampler sketch.Sampler
	// Lambda is the regularisation of the sampler, per sample.
	Lambda float64
	// Most is the largest number of centres, or 0 for no limit.
	Most int
	// Weights are those of the rows, positive and with the mean 1, or nil if all are equal.
	// Rows are drawn with chances in proportion to them.
	Weights []float64
}

const (
	// samplerRatio is λ of a sampler without a budget over λ of the fit. The dictionary
	// has far fewer points than one for λ, and a few iterations make up for the loss.
	samplerRatio = 100
	// leastRatio is the least λ of a sampler that fills a budget, over κ². Below it,
	// scores are rounding errors.
	leastRatio = 1e-10
)

// For returns s with its defaults for a fit with λ ≥ 0 on n rows. kappaSq is κ² = sup
// k(x, x), and usual the number of uniform centres for such a fit.
//
// A [sketch.Budgeted] sampler fills Most if only that is given. Without both it draws
// what λ needs, and at most the usual number. The λ of another sampler is 100λ, and
// κ²/√n if λ = 0. A [Tried] sampler learns λ.
func (s Sampling) For(lambda, kappaSq float64, usual, n int) Sampling {
	_, budgeted := s.Sampler.(sketch.Budgeted)
	if t, ok := s.Sampler.(Tried); ok && s.Lambda == 0 {
		t.lambda = max(lambda, leastRatio*kappaSq)
		s.Sampler = t
	}
	switch {
	case s.Sampler != nil && s.Lambda > 0:
	case budgeted && s.Most >= n:
		s.Sampler = nil // all rows are centres
	case budgeted && s.Most > 0:
		s.Lambda = leastRatio * kappaSq
	case budgeted:
		s.Lambda, s.Most = max(lambda, leastRatio*kappaSq), usual
	case lambda > 0:
		s.Lambda = min(samplerRatio*lambda, max(kappaSq, lambda))
	default:
		s.Lambda = kappaSq / math.Sqrt(float64(n))
	}
	if s.Sampler == nil && s.Most == 0 {
		s.Most = usual
	}
	s.Most = min(s.Most, n)
	return s
}

// ChooseCenters lets a sampler choose centres from src. A nil sampler means
// sketch.Uniform{Points: s.Most}. A [sketch.Budgeted] sampler stops at s.Most > 0
// points. If another one returns more, they are thinned. Of a path, the finest level
// with at most that many points is kept. Otherwise a uniform subset is kept, and its
// weights grow in proportion. An s.Most above n means n.
//
// With s.Weights, uniform centres are those of drawing copies of rows until as many rows are
// different. The other samplers of package sketch draw from as many copies as there are rows,
// and the centres are the rows of the copies. A sampler of the caller's own gets the rows.
//
// The random numbers depend on seed alone. It returns the errors of the sampler.
func ChooseCenters(ctx context.Context, k kernel.Kernel, src kernel.Source, s Sampling, seed uint64) (*Centers, error) {
	sampler, lambda, most := s.Sampler, s.Lambda, s.Most
	if sampler == nil {
		sampler, lambda = sketch.Uniform{Points: most}, 1 // λ has no effect on M uniform rows
	} else if b, ok := sampler.(sketch.Budgeted); ok && most > 0 {
		sampler = b.Budget(most)
	}
	rng := stream.New(stream.Derive(seed, "centers", 0))
	if s.Weights != nil && s.Sampler == nil {
		sampler = weighted{most, s.Weights}
	}
	from, rows, err := resample(src, s, rng)
	if err != nil {
		return nil, err
	}
	d, err := sampler.Sample(ctx, k, from, lambda, rng)
	if err != nil {
		return nil, err
	}
	level := d.Level
	if most > 0 && level.Len() > most {
		if coarser, err := d.Truncate(most); err == nil && coarser.Len() > 0 {
			d, level = coarser, coarser.Level
		} else {
			chosen := rng.Perm(level.Len())[:most]
			slices.Sort(chosen)
			level = thinned(level, chosen)
		}
	}
	c := &Centers{Points: level.Points, Indices: level.Indices, Weights: level.InverseWeights(), Dictionary: d}
	if rows != nil {
		c.join(rows, s.Weights)
	}
	if s.Sampler != nil {
		c.Notes = []string{fmt.Sprintf("the sampler chose %d centres for λ = %.3g, having read %d of %d rows", c.Len(), d.Lambda, d.Rows, d.N)}
	}
	t, tried := s.Sampler.(Tried)
	pairs, ok := src.(data.Source)
	if !tried || !ok || t.lambda == 0 || c.gains(ctx, k, pairs, s.Weights, t.lambda, seed) {
		return c, ctx.Err()
	}
	notes := append(c.Notes, fmt.Sprintf("%d uniform centres are used, because trials showed no clear gain of those of the sampler", c.Len()))
	c, err = ChooseCenters(ctx, k, src, Sampling{Most: c.Len(), Weights: s.Weights}, seed)
	if err == nil {
		c.Notes = notes
	}
	return c, err
}

// weighted draws different rows with chances in proportion to their weights s, which have the
// mean 1, by the least of random numbers with the rates s (Efraimidis and Spirakis, 2006).
type weighted struct {
	points int
	s      []float64
}

// Sample implements sketch.Sampler.
func (w weighted) Sample(ctx context.Context, _ kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*sketch.Dictionary, error) {
	n := len(w.s)
	keys, order := make([]float64, n), make([]int, n)
	for i, s := range w.s {
		keys[i], order[i] = rng.ExpFloat64()/s, i
	}
	slices.SortFunc(order, func(i, j int) int { return cmp.Compare(keys[i], keys[j]) })
	chosen := order[:min(w.points, n)]
	slices.Sort(chosen)
	points, err := kernel.Select(ctx, src, chosen)
	weights := make([]float64, len(chosen))
	for j, i := range chosen {
		weights[j] = min(1, w.s[i]*float64(len(chosen))/float64(n))
		if len(chosen) == n {
			weights[j] = 1
		}
	}
	level := sketch.Level{Lambda: lambda, Indices: chosen, Weights: weights, Points: points}
	return &sketch.Dictionary{N: n, Level: level, Rows: len(chosen)}, err
}

// resample returns copies of the rows for a sampler other than the uniform one, with the rows
// of the copies. They are src and nil without weights.
func resample(src kernel.Source, s Sampling, rng *rand.Rand) (kernel.Source, []int, error) {
	pairs, ok := src.(data.Source)
	if s.Weights == nil || !ok || !byScores(s.Sampler) {
		return src, nil, nil
	}
	rows, sum, at := make([]int, 0, len(s.Weights)), 0.0, rng.Float64()
	for i, w := range s.Weights {
		for sum += w; float64(len(rows))+at < sum && len(rows) < len(s.Weights); {
			rows = append(rows, i)
		}
	}
	copies, err := data.Subset(pairs, rows)
	return copies, rows, err
}

// byScores reports whether a sampler is one of package sketch that draws by leverage scores.
func byScores(s sketch.Sampler) bool {
	switch s.(type) {
	case Tried, sketch.BLESS, sketch.BLESSR, sketch.SQUEAK, sketch.RecursiveRLS, sketch.TwoPass, sketch.ExactRLS:
		return true
	}
	return false
}

// join replaces centres among copies by centres among the rows. The weights of equal ones are
// added, and divided by those of the rows.
func (c *Centers) join(rows []int, s []float64) {
	var first, indices []int
	var weights []float64
	for j, v := range c.Indices {
		i, last := rows[v], len(indices)-1
		if last < 0 || indices[last] != i {
			first, indices, weights = append(first, j), append(indices, i), append(weights, 0)
			last++
		}
		weights[last] += c.Weights[j] / s[i]
	}
	c.Points, c.Indices, c.Weights = c.Points.Select(first), indices, weights
}

// thinned returns the chosen points of a level. It multiplies their probabilities of being
// in the level by the share that was kept.
func thinned(l sketch.Level, chosen []int) sketch.Level {
	share := float64(len(chosen)) / float64(l.Len())
	out := sketch.Level{Lambda: l.Lambda, Points: l.Points.Select(chosen), EffectiveDimension: l.EffectiveDimension}
	for _, j := range chosen {
		out.Indices = append(out.Indices, l.Indices[j])
		out.Weights = append(out.Weights, l.Weights[j]*share)
	}
	return out
}
