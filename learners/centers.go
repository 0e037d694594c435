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

// Automatic is the sampler that takes uniform centres, or those of [sketch.RPCholesky] where
// these leave clearly less of the kernel on other rows. That is so where groups of rows are far
// from the others. It is decided with a fixed number of centres, so that M changes only how many
// there are.
type Automatic struct{ sketch.Uniform }

const (
	// samplerRatio is λ of a sampler by leverage scores over λ of the fit. The dictionary has
	// far fewer points than one for λ, and a few iterations make up for the loss.
	samplerRatio = 100
	// leastRatio is the least λ of a path over κ². Below it, scores are rounding errors.
	leastRatio = 1e-10
	// rowsPerPoint is the number of rows for each point that BLESS reads.
	rowsPerPoint = 10
	// pivotRows and mostPivots bound the memory of RPCholesky. Uniform centres follow the
	// last pivot.
	pivotRows, mostPivots = 1 << 14, 2048
	// probes is the number of centres with which Automatic decides, at most an eighth of the
	// rows, and fewProbes the least number. leftGain is the largest ratio of what they leave
	// (bench/docs/reproductions.md).
	probes, fewProbes = 400, 10
	leftGain          = 1.0 / 3
)

// For returns s with its defaults for a fit with λ ≥ 0 on n rows. kappaSq is κ² = sup
// k(x, x), and usual the number of uniform centres for such a fit.
//
// Samplers by leverage scores find M themselves, which depends on their λ, and Most is a limit.
// That λ is 100λ, and κ²/√n if λ = 0. BLESS and BLESS-R find at most the usual number, and as
// many if only Most is given.
func (s Sampling) For(lambda, kappaSq float64, usual, n int) Sampling {
	path := false
	switch b := s.Sampler.(type) {
	case nil, Automatic, sketch.RPCholesky:
		if s.Most = cmp.Or(s.Most, usual); s.Most >= n {
			s.Sampler = nil // all rows are centres
		}
	case sketch.BLESS:
		b.MaxPoints, b.MaxCandidates = cmp.Or(b.MaxPoints, usual), cmp.Or(b.MaxCandidates, rowsPerPoint*usual)
		s.Sampler, path = b, true
	case sketch.BLESSR:
		b.MaxPoints, b.MaxCandidates = cmp.Or(b.MaxPoints, usual), cmp.Or(b.MaxCandidates, rowsPerPoint*usual)
		s.Sampler, path = b, true
	}
	switch {
	case s.Lambda > 0:
	case path && s.Most > 0:
		s.Lambda = leastRatio * kappaSq
	case lambda > 0:
		s.Lambda = min(samplerRatio*lambda, max(kappaSq, lambda))
	default:
		s.Lambda = kappaSq / math.Sqrt(float64(n))
	}
	s.Most = min(s.Most, n)
	return s
}

// ChooseCenters lets a sampler choose centres from src. A nil sampler means
// sketch.Uniform{Points: s.Most}, and [sketch.RPCholesky] has as many points too. If another one
// returns more than s.Most > 0 points, they are thinned to a uniform subset, and its weights grow
// in proportion. An s.Most above n means n.
//
// For each sampler the centres are the first of one order, so that those for a larger s.Most
// contain those for a smaller one.
//
// With s.Weights, uniform centres are those of drawing copies of rows until as many rows are
// different. The other samplers of package sketch draw from as many copies as there are rows,
// and the centres are the rows of the copies. A sampler of the caller's own gets the rows.
//
// The random numbers depend on seed alone. It returns the errors of the sampler.
func ChooseCenters(ctx context.Context, k kernel.Kernel, src kernel.Source, s Sampling, seed uint64) (*Centers, error) {
	rng := stream.New(stream.Derive(seed, "centers", 0))
	from, rows, err := resample(src, s, rng)
	if err != nil {
		return nil, err
	}
	var notes []string
	if _, ok := s.Sampler.(Automatic); ok {
		rare, note, err := rareRows(ctx, k, from, stream.New(stream.Derive(seed, "centers", 1)))
		if err != nil {
			return nil, err
		}
		if s.Sampler, notes = nil, note; rare {
			s.Sampler = sketch.RPCholesky{}
		} else {
			from, rows = src, nil
		}
	}
	sampler, lambda, most := s.Sampler, s.Lambda, s.Most
	switch b := sampler.(type) {
	case nil:
		sampler, lambda = sketch.Uniform{Points: most}, 1 // λ has no effect on M uniform rows
		if s.Weights != nil {
			sampler = weighted{most, s.Weights}
		}
	case sketch.RPCholesky:
		b.Rows, b.Points = pivotRows, min(most, mostPivots)
		sampler, lambda = b, 1
	}
	d, err := sampler.Sample(ctx, k, from, lambda, rng)
	if err != nil {
		return nil, err
	}
	level := d.Level
	if most > 0 && level.Len() > most {
		chosen := rng.Perm(level.Len())[:most]
		slices.Sort(chosen)
		level = thinned(level, chosen)
	}
	c := &Centers{Points: level.Points, Indices: level.Indices, Weights: level.InverseWeights(), Dictionary: d, Notes: notes}
	if rows != nil {
		c.join(rows, s.Weights)
	}
	switch b := sampler.(type) {
	case sketch.RPCholesky:
		c.Notes = append(c.Notes, fmt.Sprintf("%d centres by RPCholesky leave %.2g of the mean of k(x, x)", c.Len(), d.Residual))
		if b.Points == mostPivots {
			err = c.fill(ctx, src, most, seed)
		}
	case sketch.Uniform, weighted:
	default:
		c.Notes = append(c.Notes, fmt.Sprintf("the sampler chose %d centres for λ = %.3g, having read %d of %d rows", c.Len(), d.Lambda, d.Rows, d.N))
	}
	return c, cmp.Or(err, ctx.Err())
}

// rareRows decides for [Automatic], and says why. It chooses from four fifths of the rows and looks at
// what is left of the kernel on the others. From fewer, most of a hundred small groups would be new there.
func rareRows(ctx context.Context, k kernel.Kernel, src kernel.Source, rng *rand.Rand) (rare bool, notes []string, err error) {
	n := src.Len()
	m, own := min(probes, n/8), min(n*4/5, pivotRows)
	if m < fewProbes {
		return false, nil, nil
	}
	order := stream.NewPermutation(rng.Uint64(), uint64(n))
	rows := make([]int, min(n, own*5/4))
	for i := range rows {
		rows[i] = int(order.At(uint64(i)))
	}
	slices.Sort(rows)
	x, err := kernel.Select(ctx, src, rows)
	if err != nil {
		return false, nil, err
	}
	side := rng.Perm(len(rows))
	from, other := x.Select(side[:own]), kernel.FromRows(x.Select(side[own:]))
	d, err := sketch.RPCholesky{Points: m}.Sample(ctx, k, kernel.FromRows(from), 1, rng)
	if err != nil {
		return false, nil, err
	}
	uniform, err := sketch.Residual(ctx, k, other, from.Slice(0, m))
	if err != nil {
		return false, nil, err
	}
	pivots, err := sketch.Residual(ctx, k, other, d.Points)
	if err != nil {
		return false, nil, err
	}
	rare = pivots < leftGain*uniform
	chosen := map[bool]string{true: "RPCholesky", false: "uniform centres"}[rare]
	return rare, []string{fmt.Sprintf("%d uniform centres leave %.2g of the kernel on other rows, and as many by RPCholesky %.2g, so the choice is %s", m, uniform, pivots, chosen)}, nil
}

// fill adds the first uniform rows until there are m centres.
func (c *Centers) fill(ctx context.Context, src kernel.Source, m int, seed uint64) error {
	own, rows := c.Len(), slices.Clone(c.Indices)
	order := stream.NewPermutation(stream.Derive(seed, "centers", 2), uint64(src.Len()))
	for i := uint64(0); len(rows) < m && i < uint64(src.Len()); i++ {
		if v := int(order.At(i)); !slices.Contains(c.Indices, v) {
			rows = append(rows, v)
		}
	}
	each, share := float64(src.Len())/float64(len(rows)), float64(own)/float64(len(rows))
	weights := map[int]float64{}
	for j, v := range c.Indices {
		weights[v] = share * c.Weights[j]
	}
	slices.Sort(rows)
	c.Indices, c.Weights = rows, make([]float64, len(rows))
	for j, v := range rows {
		c.Weights[j] = cmp.Or(weights[v], each)
	}
	var err error
	c.Points, err = kernel.Select(ctx, src, rows)
	return err
}

// weighted draws different rows with chances in proportion to their weights s, which have the
// mean 1, by the least of random numbers with the rates s (Efraimidis and Spirakis, 2006).
type weighted struct {
	points int
	s      []float64
}

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

// byScores reports whether a sampler is one that draws by the kernel.
func byScores(s sketch.Sampler) bool {
	switch s.(type) {
	case Automatic, sketch.RPCholesky, sketch.BLESS, sketch.BLESSR, sketch.SQUEAK, sketch.RecursiveRLS, sketch.TwoPass, sketch.ExactRLS:
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
