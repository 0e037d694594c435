package bandit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/inorder"
	"github.com/bkbtuner/bkb/internal/sobol"
)

// Search searches for the point of a box with the largest score. It scores Sobol' points and
// moves of good points, then smaller and smaller moves of the best candidates. Then it climbs the
// gradient from the best of all. The result is good, but not certain to be the maximum.
type Search struct {
	Surface Surface
	Domain  Domain
	// Wide is the number of Sobol' points, scrambled by Seed.
	Wide int
	Seed uint64
	// Near is the number of moves of Parents, which are good points known before. It
	// has an effect only if there are Parents.
	Near    int
	Parents [][]float64
	// Refine is the number of moves of the four best candidates, once for each of three sizes.
	Refine int
	// Starts is the number of candidates to climb from, with Budget evaluations in all.
	Starts, Budget int
	// Climbers is how many climb at the same time, 1 if it is 0. It changes no result.
	Climbers int
}

// Surface is the function that a Search maximises.
type Surface interface {
	// Score returns the score of every row of x, where larger is better, and the mean
	// and variance from which it was computed.
	Score(x *kernel.Points[float64]) (Scores, error)
	// Probe returns a way to climb, for one climb. It is nil where the score has no
	// gradient. Some climbs may go on at the same time.
	Probe() *Probe
}

// Scores are those of several points, with predictions for the same points.
type Scores struct{ Score, Mean, Variance []float64 }

// Domain is the set that a Search covers, a box in which not every point need be valid.
type Domain interface {
	// Box returns the corners of the box.
	Box() (low, high []float64)
	// Unit returns the length of each coordinate in which steps are measured.
	Unit() []float64
	// Mutate moves a point at random by steps of the given size.
	Mutate(x []float64, size float64, rng *rand.Rand)
	// Snap moves the rows of x onto valid points.
	Snap(x *kernel.Points[float64])
	// Free sets in which coordinates the score can be climbed at x. It returns false
	// where climbing is impossible.
	Free(x []float64, free []bool) bool
	// Keep moves a point of the box onto a point that keeps constraints.
	Keep(x []float64)
}

// Slope is a posterior that is evaluated at one point after another.
type Slope interface {
	// Value returns μ(u) and σ(u), and keeps u.
	Value(u []float64) (mean, sd float64, err error)
	// Gradient returns ∇μ and ∇σ at the point of the last Value. They hold until the
	// next call, and may be longer than u.
	Gradient() (mean, sd []float64)
}

// Probe is the score μ + Width·σ of a posterior at single points.
type Probe struct {
	Slope Slope
	Width float64
}

func (p *Probe) value(u []float64) (float64, error) {
	mean, sd, err := p.Slope.Value(u)
	return mean + p.Width*sd, err
}

// These are sizes of moves away from a point, in units of the domain.
var (
	nearSizes   = [...]float64{0.02, 0.1, 0.5}   // of the parents, in turn
	refineSizes = [...]float64{0.1, 0.02, 0.004} // of the best candidates, one after another
)

// refined is the number of best candidates to refine. crossed is the period at which a
// move of parents starts between two of them.
const (
	refined = 4
	crossed = 6
)

// Run returns all candidates with their scores. All its random numbers come from Seed
// and rng. The errors are those of the Surface.
func (s *Search) Run(rng *rand.Rand) (*Pool, error) {
	p := new(Pool)
	wide := s.wide()
	near := s.moves(s.Parents, s.Near, 0, rng)
	if err := p.Add(s.Surface, kernel.NewPoints(wide.Len()+near.Len(), wide.Dim(), append(wide.Data(), near.Data()...))); err != nil {
		return nil, err
	}
	for _, size := range refineSizes {
		if err := p.Add(s.Surface, s.moves(p.top(refined), s.Refine, size, rng)); err != nil {
			return nil, err
		}
	}
	return p, s.climb(p)
}

// wide returns the Sobol' points.
func (s *Search) wide() *kernel.Points[float64] {
	low, high := s.Domain.Box()
	x := kernel.NewPoints[float64](s.Wide, len(low), nil)
	sequence := sobol.New(len(low), s.Seed)
	for i := range s.Wide {
		row := x.Row(i)
		sequence.At(uint32(i), row)
		for c, u := range row {
			row[c] = low[c] + u*(high[c]-low[c])
		}
	}
	s.Domain.Snap(x)
	return x
}

// moves returns n mutations of the given points, in turn, with steps of the given size,
// or of several sizes if size is 0.
func (s *Search) moves(from [][]float64, n int, size float64, rng *rand.Rand) *kernel.Points[float64] {
	low, high := s.Domain.Box()
	if len(from) == 0 {
		n = 0
	}
	x := kernel.NewPoints[float64](n, len(low), nil)
	for i := range n {
		step, row := size, x.Row(i)
		copy(row, from[i%len(from)])
		if size == 0 {
			step = nearSizes[i/len(from)%len(nearSizes)]
			if i%crossed == crossed-1 {
				cross(row, from[rng.IntN(len(from))], rng)
			}
		}
		s.Domain.Mutate(row, step, rng)
		for c := range row {
			row[c] = min(max(row[c], low[c]), high[c])
		}
	}
	s.Domain.Snap(x)
	return x
}

// cross takes about half of the coordinates from another point.
func cross(x, other []float64, rng *rand.Rand) {
	for c := range x {
		if rng.IntN(2) == 0 {
			x[c] = other[c]
		}
	}
}

// climb adds the results of climbing from the best candidates.
func (s *Search) climb(p *Pool) error {
	if s.Starts == 0 {
		return nil
	}
	var climbs []*climb
	for _, x := range p.top(s.Starts) {
		c := s.newClimb(x)
		if !s.Domain.Free(c.x, c.free) {
			continue
		}
		if c.probe = s.Surface.Probe(); c.probe == nil {
			return nil // the first one, so that no climb has begun
		}
		climbs = append(climbs, c)
	}
	err := inorder.Blocks(len(climbs), 1, max(s.Climbers, 1), func(i, _ int) error { return climbs[i].run(s.Budget / s.Starts) })
	if err != nil {
		return err
	}
	low, _ := s.Domain.Box()
	x := kernel.NewPoints[float64](len(climbs), len(low), nil)
	for i, c := range climbs {
		copy(x.Row(i), c.x)
	}
	s.Domain.Snap(x)
	return p.Add(s.Surface, x)
}

// Pool holds candidates with their scores, in the order in which they were found.
type Pool struct {
	X [][]float64
	Scores
}

// Add scores the rows of x. The errors are those of the Surface.
func (p *Pool) Add(s Surface, x *kernel.Points[float64]) error {
	if x.Len() == 0 {
		return nil
	}
	scores, err := s.Score(x)
	if err != nil {
		return err
	}
	p.Score, p.Mean, p.Variance = append(p.Score, scores.Score...), append(p.Mean, scores.Mean...), append(p.Variance, scores.Variance...)
	for i := range x.Len() {
		p.X = append(p.X, x.Row(i))
	}
	return nil
}

// Order returns the candidates by score, best first, and the first of equals first.
func (p *Pool) Order() []int { return Largest(p.Score, len(p.Score)) }

// top returns the n best candidates.
func (p *Pool) top(n int) [][]float64 {
	var out [][]float64
	for _, i := range Largest(p.Score, n) {
		out = append(out, p.X[i])
	}
	return out
}

// Largest returns the indices of the n largest numbers, largest first, and the first of
// equals first. If there are fewer numbers, it returns all.
func Largest(v []float64, n int) []int {
	order := make([]int, len(v))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, k int) int { return cmp.Or(cmp.Compare(v[k], v[i]), i-k) })
	return order[:min(n, len(order))]
}

// climb moves a point uphill within the box of a search. It makes projected gradient steps
// that grow while they help and shrink while they do not.
type climb struct {
	search  *Search
	probe   *Probe
	x, next []float64
	free    []bool
	slope   []float64 // the direction of the next step, of the given norm
	norm    float64
	size    float64
}

// These are the lengths of steps uphill, in units of the domain.
const (
	firstStep   = 0.1
	longestStep = 1.0
	leastStep   = 1e-7
)

// newClimb returns the climb from a point. It has no probe yet.
func (s *Search) newClimb(x []float64) *climb {
	d := len(x)
	return &climb{search: s, x: slices.Clone(x), next: make([]float64, d), free: make([]bool, d), slope: make([]float64, d), size: firstStep}
}

// run climbs from x, with a number of evaluations at most.
func (c *climb) run(budget int) error {
	best, err := c.probe.value(c.x)
	stale := true // slope is not that at x
	for ; budget > 1 && c.size > leastStep && err == nil; budget-- {
		if stale {
			c.direction()
			stale = false
		}
		if !c.move() {
			return nil
		}
		if c.search.Domain.Keep(c.next); slices.Equal(c.next, c.x) { // the step was undone
			c.size /= 4
			continue
		}
		var value float64
		if value, err = c.probe.value(c.next); value > best {
			copy(c.x, c.next)
			best, stale = value, true
			c.size = min(2*c.size, longestStep)
		} else {
			c.size /= 4
		}
	}
	return err
}

// move sets next to the end of the next step. It reports whether that is another point.
func (c *climb) move() bool {
	if c.norm == 0 {
		return false
	}
	low, high := c.search.Domain.Box()
	for i, x := range c.x {
		c.next[i] = min(max(x+c.size*c.slope[i]/c.norm, low[i]), high[i])
	}
	return !slices.Equal(c.next, c.x)
}

// direction sets slope to the gradient at x, the point of the probe's last value. It leaves
// out components that point out of the box. Slope and norm are in units of the domain.
func (c *climb) direction() {
	mean, sd := c.probe.Slope.Gradient()
	low, high := c.search.Domain.Box()
	unit := c.search.Domain.Unit()
	squares := 0.0
	for i, ok := range c.free {
		c.slope[i] = 0
		if !ok {
			continue
		}
		v := (mean[i] + c.probe.Width*sd[i]) * unit[i]
		if c.x[i] <= low[i] && v < 0 || c.x[i] >= high[i] && v > 0 {
			continue
		}
		squares += v * v
		c.slope[i] = v * unit[i]
	}
	c.norm = math.Sqrt(squares)
}
