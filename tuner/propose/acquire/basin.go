package acquire

import (
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/model"
)

// basin is a search for a better place under the far model (see [model.Engine.Far]). It
// maximizes the logarithm of the expected improvement, everywhere, and refuses points that
// are close to a trial.
type basin struct {
	*acquisition
	outlook *model.Outlook
	engine  *model.Engine
	kept    *kernel.Points[float64]
	good    *kernel.Points[float64] // results to improve on, which keep the limits
	best    float64                 // mean, of results that keep the limits
	parents [][]float64
	pending [][]float64
}

// refused is subtracted from the score of a point that is close to a trial or likely to fail.
const refused = 1e6

// newBasin returns a search. There is a far model, and something to improve on.
func (a *acquisition) newBasin() *basin {
	e := a.engine.Far()
	f := &basin{acquisition: a, engine: e, outlook: e.Outlook(), kept: e.Kept(), pending: a.running()}
	for _, x := range a.chosen {
		f.outlook.Pull(x)
	}
	f.good = f.kept
	if e.Limited() { // thinned results may break the limits
		f.good = a.standing(a.engine).x
	}
	f.improve(f.good)
	return f
}

// improve makes the search improve on the best of some results, and mutate these.
func (f *basin) improve(good *kernel.Points[float64]) {
	mean := f.engine.Means(0, good)
	top := bandit.Largest(mean, parents)
	f.best, f.parents = mean[top[0]], nil
	for _, i := range top {
		f.parents = append(f.parents, good.Row(i))
	}
}

// branch returns the part of a conditional space with values of the parameters that others
// depend on, drawn at random, for half of the searches. So each branch gets a share of the
// trials, however bad its first ones were. It returns nil for the whole space.
func (f *basin) branch(rng *rand.Rand) *box {
	sp := f.spec.Space
	var parents []int
	for _, p := range sp.Parameters() {
		for _, w := range p.When {
			c, ok := sp.Coordinate(w.Parent)
			if ok && !sp.Axes()[c].Ordered && !slices.Contains(parents, c) {
				parents = append(parents, c)
			}
		}
	}
	if len(parents) == 0 || rng.IntN(2) == 0 {
		return nil
	}
	b := &box{low: make([]float64, sp.Dim()), high: slices.Repeat([]float64{1}, sp.Dim())}
	for _, c := range parents {
		b.low[c] = rng.Float64()
		b.high[c] = b.low[c]
	}
	return b
}

// restrict makes the search improve on the best result of a branch, also if others are better.
// Otherwise a branch whose first results are bad is searched where nothing is known, and never
// where it is best. If the branch has no result to improve on, that of all others stays.
func (f *basin) restrict(b *box) {
	var inside [][]float64
	for i := range f.good.Len() {
		if x := f.good.Row(i); f.sameBranch(x, b) {
			inside = append(inside, x)
		}
	}
	if len(inside) > 0 {
		f.improve(pointsOf(inside))
	}
}

// sameBranch reports whether a point has the categories of a branch.
func (f *basin) sameBranch(x []float64, b *box) bool {
	y := slices.Clone(x)
	for c := range y {
		if b.low[c] == b.high[c] {
			y[c] = b.low[c]
		}
	}
	if f.spec.Space.Snap(y) != nil {
		return false
	}
	for c := range y {
		if b.low[c] == b.high[c] && y[c] != x[c] {
			return false
		}
	}
	return true
}

func (f *basin) Score(x *kernel.Points[float64]) (bandit.Scores, error) {
	var out bandit.Scores
	out.Mean, out.Variance = f.outlook.Predict(0, x)
	score := make([]float64, x.Len())
	for i, m := range out.Mean {
		score[i], _, _ = bandit.LogImprovement(f.best, m, out.Variance[i])
		if f.close(x.Row(i)) {
			score[i] -= refused
		}
	}
	if f.outlook.Doubts() {
		f.avoid(score, x, false)
	}
	out.Score = score
	return out, nil
}

// close reports whether a point is close to a trial.
func (f *basin) close(x []float64) bool {
	for i := range f.kept.Len() {
		if f.engine.Close(x, f.kept.Row(i)) {
			return true
		}
	}
	return slices.ContainsFunc(f.pending, func(y []float64) bool { return f.engine.Close(x, y) })
}

func (f *basin) Probe() *bandit.Probe {
	if f.outlook.Doubts() {
		return nil
	}
	return &bandit.Probe{Slope: f.outlook.Probe(&f.best)}
}

// pick returns the best point that the study does not have, of one branch or of any.
func (f *basin) pick(trial int) ([]float64, error) {
	seed := stream.Derive(f.trialSeed(trial), "far", 0)
	rng := stream.New(seed)
	branch := f.branch(rng)
	if branch != nil {
		f.restrict(branch)
	}
	s := newSearch(f.outlook, newDomain(f.spec.Space, f.outlook.Lengths(), branch), manyInducing/2)
	s.Surface, s.Seed, s.Parents = f, seed, f.parents
	pool, err := s.Run(rng)
	if err != nil {
		panic("acquire: a far search: " + err.Error()) // there are no errors
	}
	return f.first(pool)
}
