package bandit_test

import (
	"cmp"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// steps is a domain whose last coordinate is a multiple of 1/8 and cannot be climbed.
type steps struct {
	low, high []float64
	snapped   int
}

func (s *steps) Box() (low, high []float64) { return s.low, s.high }
func (s *steps) Unit() []float64            { return slices.Repeat([]float64{0.4}, len(s.low)) }

func (s *steps) Mutate(x []float64, size float64, rng *rand.Rand) {
	for c := range x {
		x[c] += size * rng.NormFloat64() // Search keeps it in the box
	}
}

func (s *steps) Snap(x *kernel.Points[float64]) {
	last := len(s.low) - 1
	for i := range x.Len() {
		x.Row(i)[last] = math.Round(8*x.Row(i)[last]) / 8
		s.snapped++
	}
}

func (s *steps) Keep([]float64) {}

func (s *steps) Free(_ []float64, free []bool) bool {
	for c := range free {
		free[c] = c < len(free)-1
	}
	return true
}

// peak is a score with its gradient, a paraboloid with its maximum 0 at top. Its
// prediction is the score itself.
type peak struct {
	top  []float64
	asks int
	fail int // the call that fails
}

var errAsked = errors.New("asked too often")

func (p *peak) Score(x *kernel.Points[float64]) (bandit.Scores, error) {
	var out bandit.Scores
	for i := range x.Len() {
		v, _, err := p.Value(x.Row(i))
		if err != nil {
			return out, err
		}
		out.Score, out.Mean, out.Variance = append(out.Score, v), append(out.Mean, v), append(out.Variance, 0)
	}
	return out, nil
}

func (p *peak) Probe() *bandit.Probe { return &bandit.Probe{Slope: &flank{peak: p}, Width: 1} }

func (p *peak) Value(u []float64) (mean, sd float64, err error) {
	if p.asks++; p.asks == p.fail {
		return 0, 0, errAsked
	}
	for c, v := range u {
		mean -= (v - p.top[c]) * (v - p.top[c])
	}
	return mean, 0, nil
}

// flank is a peak at one point after another.
type flank struct {
	*peak
	at []float64
}

func (f *flank) Value(u []float64) (mean, sd float64, err error) {
	f.at = slices.Clone(u)
	return f.peak.Value(u)
}

func (f *flank) Gradient() (mean, sd []float64) {
	for c, v := range f.at {
		mean, sd = append(mean, -2*(v-f.top[c])), append(sd, 0)
	}
	return append(mean, 1e9), append(sd, 1e9) // values beyond the coordinates of the point do not count
}

func searchOf(p *peak, d *steps) bandit.Search {
	return bandit.Search{
		Surface: p, Domain: d, Wide: 64, Seed: 3, Near: 30, Refine: 8, Starts: 3, Budget: 120,
		Parents: [][]float64{{0.5, 0.5, 0.5}, {0.2, 0.2, 0.25}},
	}
}

// The maximum is found in the box or at its edge, and only on valid points. Climbing
// improves every other kind of candidate.
func TestSearchFindsTheMaximum(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d := &steps{low: []float64{0, 0.1, 0}, high: []float64{1, 0.6, 1}}
		p := &peak{top: []float64{rng.Float64(), rng.Float64(), rng.Float64()}}
		s := searchOf(p, d)
		pool, err := s.Run(rand.New(rand.NewPCG(seed, 2)))
		if err != nil {
			t.Fatal(err)
		}
		if want := 64 + 30 + 3*8 + 3; len(pool.X) != want || d.snapped != want || len(pool.Score) != want || len(pool.Mean) != want || len(pool.Variance) != want {
			t.Fatalf("%d candidates, %d made valid, %d scores; want %d", len(pool.X), d.snapped, len(pool.Score), want)
		}
		for _, x := range pool.X {
			if 8*x[2] != math.Round(8*x[2]) || x[1] < 0.1 || x[1] > 0.6 || min(x[0], x[2]) < 0 || max(x[0], x[2]) > 1 {
				t.Fatalf("candidate %v", x)
			}
		}
		best := pool.X[pool.Order()[0]]
		near(t, "the best", best[:2], []float64{p.top[0], min(max(p.top[1], 0.1), 0.6)}, 1e-4)
		if math.Abs(best[2]-p.top[2]) > 0.2 {
			t.Errorf("the best is %v, the top %v", best, p.top)
		}
		s.Starts = 0
		without := must(s.Run(rand.New(rand.NewPCG(seed, 2))))
		if !slices.EqualFunc(pool.X[:len(without.X)], without.X, slices.Equal[[]float64]) {
			t.Error("the candidates before climbing are others without it")
		}
		if a, b := without.Score[without.Order()[0]], pool.Score[pool.Order()[0]]; a >= b {
			t.Errorf("climbing led from %v to %v", a, b)
		}
		other := searchOf(&peak{top: p.top}, &steps{low: d.low, high: d.high})
		again := must(other.Run(rand.New(rand.NewPCG(seed, 2))))
		if !slices.Equal(again.Score, pool.Score) {
			t.Error("the same search came out otherwise")
		}
		other.Surface, other.Climbers = ranges{p}, 2
		if again := must(other.Run(rand.New(rand.NewPCG(seed, 2)))); !slices.Equal(again.Score, pool.Score) {
			t.Error("two climbers came out elsewhere")
		}
	}
}

// half is a domain of the points of the unit square up to an edge. Snap moves others to the
// edge on the way to the middle, and Keep to the nearest point.
type half struct{ *steps }

const edge = 0.6

func (h half) Keep(x []float64) { x[0] = min(x[0], edge) }

func (h half) Snap(x *kernel.Points[float64]) {
	for i := range x.Len() {
		if row := x.Row(i); row[0] > edge {
			row[1] = 0.5 + (row[1]-0.5)*(edge-0.5)/(row[0]-0.5)
			row[0] = edge
		}
	}
}

func (h half) Free(_ []float64, free []bool) bool {
	for c := range free {
		free[c] = true
	}
	return true
}

// A climb follows the edge of a domain with constraints to the point next to the maximum.
func TestSearchKeepsConstraints(t *testing.T) {
	top := []float64{0.9, 0.75}
	s := bandit.Search{
		Surface: &peak{top: top}, Domain: half{&steps{low: []float64{0, 0}, high: []float64{1, 1}}},
		Wide: 16, Starts: 1, Budget: 200,
	}
	pool, err := s.Run(rand.New(rand.NewPCG(1, 2)))
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range pool.X {
		if x[0] > edge {
			t.Fatalf("candidate %v is outside", x)
		}
	}
	if best := pool.X[pool.Order()[0]]; math.Hypot(best[0]-edge, best[1]-top[1]) > 1e-4 {
		t.Errorf("the best is %v, want %v and %v", best, edge, top[1])
	}
}

// An error of the surface ends the search, at any call.
func TestSearchFails(t *testing.T) {
	for _, fail := range []int{1, 70, 100, 119, 121, 125} {
		p := &peak{top: []float64{0.3, 0.3, 0.3}, fail: fail}
		s := searchOf(p, &steps{low: make([]float64, 3), high: []float64{1, 1, 1}})
		if _, err := s.Run(rand.New(rand.NewPCG(1, 2))); !errors.Is(err, errAsked) {
			t.Errorf("at ask %d: %v", fail, err)
		}
	}
}

// Without parents there are no moves of them. Where the surface has no gradient or the
// domain forbids it, there is no climbing.
func TestSearchWithout(t *testing.T) {
	d := &steps{low: make([]float64, 3), high: []float64{1, 1, 1}}
	s := searchOf(&peak{top: []float64{0.3, 0.3, 0.3}}, d)
	s.Parents = nil
	if pool := must(s.Run(rand.New(rand.NewPCG(1, 2)))); len(pool.X) != 64+3*8+3 {
		t.Errorf("%d candidates without parents", len(pool.X))
	}
	s.Surface = flat{s.Surface}
	if pool := must(s.Run(rand.New(rand.NewPCG(1, 2)))); len(pool.X) != 64+3*8 {
		t.Errorf("%d candidates without a gradient", len(pool.X))
	}
	s.Surface, s.Domain = &peak{top: []float64{0.3, 0.3, 0.3}}, rigid{d}
	if pool := must(s.Run(rand.New(rand.NewPCG(1, 2)))); len(pool.X) != 64+3*8 {
		t.Errorf("%d candidates where climbing is forbidden", len(pool.X))
	}
}

// ranges has a peak for each climber.
type ranges struct{ *peak }

func (r ranges) Probe() *bandit.Probe { return (&peak{top: r.top}).Probe() }

type flat struct{ bandit.Surface }

func (flat) Probe() *bandit.Probe { return nil }

type rigid struct{ *steps }

func (rigid) Free([]float64, []bool) bool { return false }

// Largest is a stable sort, and NaN counts as the smallest, for any number of numbers.
func TestLargest(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	odd := []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, 1}
	for range 300 {
		v := make([]float64, rng.IntN(40))
		for i := range v {
			v[i] = rng.Float64()
			if rng.IntN(2) == 0 {
				v[i] = odd[rng.IntN(len(odd))]
			}
		}
		all := make([]int, len(v))
		for i := range all {
			all[i] = i
		}
		slices.SortStableFunc(all, func(i, k int) int { return cmp.Compare(v[k], v[i]) })
		for n := range 50 {
			if got, want := bandit.Largest(v, n), all[:min(n, len(all))]; !slices.Equal(got, want) {
				t.Fatalf("%v: the %d largest are %v, want %v", v, n, got, want)
			}
		}
	}
}
