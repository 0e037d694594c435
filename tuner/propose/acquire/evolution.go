package acquire

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// evolution is a search beside the model, as a fold of the results in the order of the log. A
// run of an evolution strategy begins at the best result and ends where it has converged. The
// next one begins at the best result of another niche. A run learns from its own samples only.
type evolution struct {
	dim         int // coordinates
	begun, told int // of the results that were followed
	niches      []niche
	run         *strategy      // nil before the first result of one
	since       study.Position // of the result that ended the run before
	first       []float64      // where the next run begins, nil for the best result
	past        [][]float64    // where the last runs began and ended
	runs        int            // that have ended
}

// niche is a good result, without a better one close to it.
type niche struct {
	x []float64
	y float64
}

const (
	leastDim   = 2   // coordinates from which on there is an evolution
	mostDim    = 16  // coordinates up to which there is one
	nicheApart = 0.1 // root mean square distance between niches
	mostNiches = 64
	mostPast   = 2 * mostNiches
	firstStep  = 0.15  // standard deviation of a run's first samples
	leastStep  = 1e-9  // at which a run ends
	poorStep   = 0.003 // at which a run ends that is worse than the best result
	redraws    = 10    // of a sample outside of the cube
	patience   = 10    // generations in vain that end a run, besides 30d over the population
)

// Evolvable reports whether an evolution can search a space. All coordinates are ordered,
// unconditional, and continuous or nearly so.
func Evolvable(sp *space.Space) bool {
	if d := sp.Dim(); d < leastDim || d > mostDim || len(sp.Constraints()) > 0 {
		return false
	}
	return !slices.ContainsFunc(sp.Axes(), func(a space.Axis) bool {
		return !a.Ordered || a.Conditional || a.Levels > 0 && a.Levels <= fineLevels
	})
}

// mayEvolve reports whether an evolution may make suggestions in a study.
func (c *Chooser) mayEvolve(e *model.Engine) bool {
	from := c.options.EvolveFrom
	return from > 0 && len(e.Results.List) >= from && c.plain(e) && !e.Blames()
}

// plain reports whether a study only has outcomes of one objective on an [Evolvable] space. Reports,
// costs and limits have not been measured with quadratics or an evolution.
func (c *Chooser) plain(e *model.Engine) bool {
	return len(c.spec.Objectives) == 1 && Evolvable(c.spec.Space) && !e.Limited() &&
		e.Event.Surfaces[0].Fidelity == nil && e.Event.Expense == nil
}

// evolves reports whether the suggestion for a trial is a sample of the evolution, while those of
// the model do not improve on the best. Of eight trials two exploit by default, and five are
// samples. Where there is a far model, which sees other basins, only three are.
func (a *acquisition) evolves(trial int, w *wish) bool {
	lane := trial % farEvery
	mine := lane != farEvery-3
	if a.engine.Event.Far != nil {
		mine = lane%2 == 0 && lane < farEvery-3
	}
	return mine && !w.exploit && !w.explore && a.region.stale >= a.inVain() && a.mayEvolve(a.engine)
}

// follow adds the new results.
func (v *evolution) follow(r *model.Results, seed uint64) {
	if v.begun != r.Begun {
		*v = evolution{dim: v.dim, begun: r.Begun}
	}
	for ; v.told < len(r.List); v.told++ {
		v.tell(&r.List[v.told], seed)
	}
}

// tell adds a result.
func (v *evolution) tell(r *model.Result, seed uint64) {
	y := math.Inf(-1)
	if r.Y != nil && r.Feasible {
		y = min(max(r.Y[0].Value, -math.MaxFloat64), math.MaxFloat64)
	}
	if r.Evolved && r.Seen >= v.since && len(v.niches) > 0 { // else it is a sample of an earlier run
		if v.run == nil {
			v.run = newStrategy(v.start(), firstStep)
		}
		v.run.tell(r.X, y, r.Seen, r.End)
	}
	if !math.IsInf(y, 0) {
		v.keep(niche{r.X, y})
	}
	if v.run == nil || !v.run.over(v.niches[0].y) {
		return
	}
	if v.past = append(v.past, v.run.start, v.run.mean); len(v.past) > mostPast {
		v.past = v.past[2:]
	}
	v.run, v.runs, v.since = nil, v.runs+1, r.End
	v.first = v.elsewhere(seed)
}

// start returns where the next run begins.
func (v *evolution) start() []float64 {
	if v.first != nil {
		return v.first
	}
	return v.niches[0].x
}

// elsewhere returns the best niche where no run has begun or ended, or a random point if there is none.
func (v *evolution) elsewhere(seed uint64) []float64 {
	for _, n := range v.niches {
		if !slices.ContainsFunc(v.past, func(x []float64) bool { return apart(x, n.x) < nicheApart }) {
			return n.x
		}
	}
	rng, x := stream.New(stream.Derive(seed, "bkb evolution", uint64(v.runs))), make([]float64, v.dim)
	for c := range x {
		x[c] = rng.Float64()
	}
	return x
}

// keep adds a niche, unless a better one is close.
func (v *evolution) keep(n niche) {
	at := len(v.niches)
	for i, have := range v.niches {
		if have.y < n.y {
			at = i
			break
		}
		if apart(have.x, n.x) < nicheApart {
			return
		}
	}
	if at == mostNiches {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(v.niches[at:]), func(m niche) bool { return apart(m.x, n.x) < nicheApart })
	v.niches = append(append(v.niches[:at], n), rest...)
	v.niches = v.niches[:min(len(v.niches), mostNiches)]
}

// apart returns the root mean square distance of two points.
func apart(x, y []float64) float64 {
	sum := 0.0
	for c, v := range x {
		sum += (v - y[c]) * (v - y[c])
	}
	return math.Sqrt(sum / float64(len(x)))
}

// sample returns a configuration that the study does not have, or no point if it finds none.
func (a *acquisition) sample(trial int) (space.Config, []float64, error) {
	v := &a.evolution
	v.follow(a.engine.Results, a.spec.Seed)
	if len(v.niches) == 0 {
		return space.Config{}, nil, nil
	}
	s := v.run
	if s == nil {
		s = newStrategy(v.start(), firstStep)
	}
	rng := stream.New(stream.Derive(a.trialSeed(trial), "evolve", 0))
	for range maxPassed {
		x := s.sample(rng)
		c, err := a.decode(x)
		if err != nil {
			return c, nil, err
		}
		if a.options.OnDuplicate == Replicate || !a.has(c) {
			return c, x, nil
		}
	}
	return space.Config{}, nil, nil
}

// strategy is a run of CMA-ES (Hansen, The CMA evolution strategy: a tutorial, 2016, with its
// default parameters but without negative weights) that maximises. The covariance is σ²AAᵀ with
// a triangular A, which also takes the place of its symmetric root in the path of the step
// (Krause, Arbonès and Igel, 2016).
type strategy struct {
	start                []float64
	mean, path, stepPath []float64
	cov, root            [][]float64 // C and A
	step                 float64     // σ
	generations          int
	since                study.Position // of the result that ended the generation before
	samples              []niche        // of the generation
	weights              []float64
	top                  float64 // best value
	best                 float64 // of earlier generations
	vain                 int     // generations since it rose
	done                 bool
}

func newStrategy(mean []float64, step float64) *strategy {
	d := len(mean)
	s := &strategy{
		start: mean, mean: slices.Clone(mean), path: make([]float64, d), stepPath: make([]float64, d),
		step: step, top: math.Inf(-1), best: math.Inf(-1),
	}
	for i := range d {
		s.cov, s.root = append(s.cov, make([]float64, d)), append(s.root, make([]float64, d))
		s.cov[i][i], s.root[i][i] = 1, 1
	}
	sum, half := 0.0, float64(s.population()+1)/2
	for i := range s.population() / 2 {
		s.weights = append(s.weights, math.Log(half)-math.Log(float64(i+1)))
		sum += s.weights[i]
	}
	for i := range s.weights {
		s.weights[i] /= sum
	}
	return s
}

// population is the number of samples of a generation.
func (s *strategy) population() int { return 4 + int(3*math.Log(float64(len(s.mean)))) }

// sample draws a point of the cube.
func (s *strategy) sample(rng *rand.Rand) []float64 {
	d := len(s.mean)
	x, z := make([]float64, d), make([]float64, d)
	for try := 0; ; try++ {
		inside := true
		for i := range z {
			z[i] = rng.NormFloat64()
		}
		for i := range x {
			x[i] = s.mean[i]
			for j := range i + 1 {
				x[i] += s.step * s.root[i][j] * z[j]
			}
			inside = inside && x[i] >= 0 && x[i] <= 1
		}
		if inside || try == redraws {
			break
		}
	}
	for i := range x {
		x[i] = min(max(x[i], 0), 1)
	}
	return x
}

// tell adds the value of a sample that was drawn at position seen and told at end. A full
// generation moves the distribution. A sample of an earlier generation can be many of today's
// steps away, so its move is bounded as that of an injected solution (Hansen, 2011).
func (s *strategy) tell(x []float64, y float64, seen, end study.Position) {
	if s.top = max(s.top, y); seen < s.since {
		x = s.bounded(x)
	}
	if s.samples = append(s.samples, niche{x, y}); len(s.samples) < s.population() {
		return
	}
	s.since = end
	slices.SortStableFunc(s.samples, func(a, b niche) int {
		switch {
		case a.y > b.y:
			return -1
		case a.y < b.y:
			return 1
		}
		return 0
	})
	s.done = s.samples[0].y == s.samples[len(s.weights)].y
	s.update()
	s.samples = nil
	if s.vain++; s.top > s.best {
		s.best, s.vain = s.top, 0
	}
	s.done = s.done || !s.factor() || s.vain > patience+30*len(s.mean)/s.population()
}

// bounded returns x, or the point between it and the mean whose Mahalanobis distance is √d + 2d/(d+2).
func (s *strategy) bounded(x []float64) []float64 {
	d, move, square := float64(len(x)), make([]float64, len(x)), 0.0
	for i, v := range x {
		move[i] = (v - s.mean[i]) / s.step
	}
	for _, v := range s.solve(move) {
		square += v * v
	}
	bound := math.Sqrt(d) + 2*d/(d+2)
	if square <= bound*bound {
		return x
	}
	shrink := s.step * bound / math.Sqrt(square)
	for i, v := range move {
		move[i] = s.mean[i] + shrink*v
	}
	return move
}

// update moves the distribution towards the better half of the samples, equations 42 to 51 of the tutorial
// of 2016.
func (s *strategy) update() {
	d, n, square := len(s.mean), float64(len(s.mean)), 0.0
	for _, w := range s.weights {
		square += w * w
	}
	mass := 1 / square
	cc := (4 + mass/n) / (n + 4 + 2*mass/n)
	cs := (mass + 2) / (n + mass + 5)
	c1 := 2 / ((n+1.3)*(n+1.3) + mass)
	cm := min(1-c1, 2*(mass-2+1/mass)/((n+2)*(n+2)+mass))
	damping := 1 + 2*max(0, math.Sqrt((mass-1)/(n+1))-1) + cs
	normal := math.Sqrt(n) * (1 - 1/(4*n) + 1/(21*n*n))
	s.generations++

	moves := make([][]float64, len(s.weights))
	move := make([]float64, d)
	for k, w := range s.weights {
		moves[k] = make([]float64, d)
		for i, v := range s.samples[k].x {
			moves[k][i] = (v - s.mean[i]) / s.step
			move[i] += w * moves[k][i]
		}
	}
	length := 0.0
	for i, v := range s.solve(move) {
		s.mean[i] += s.step * move[i]
		s.stepPath[i] = (1-cs)*s.stepPath[i] + math.Sqrt(cs*(2-cs)*mass)*v
		length += s.stepPath[i] * s.stepPath[i]
	}
	length = math.Sqrt(length)
	h := 0.0
	if length/math.Sqrt(1-math.Pow(1-cs, 2*float64(s.generations))) < (1.4+2/(n+1))*normal {
		h = 1
	}
	for i, v := range move {
		s.path[i] = (1-cc)*s.path[i] + h*math.Sqrt(cc*(2-cc)*mass)*v
	}
	for i := range d {
		for j := range d {
			v := (1-c1-cm+c1*(1-h)*cc*(2-cc))*s.cov[i][j] + c1*s.path[i]*s.path[j]
			for k, w := range s.weights {
				v += cm * w * moves[k][i] * moves[k][j]
			}
			s.cov[i][j] = v
		}
	}
	s.step *= math.Exp(min(1, cs/damping*(length/normal-1)))
}

// solve returns A⁻¹y.
func (s *strategy) solve(y []float64) []float64 {
	x := slices.Clone(y)
	solve(s.root, x)
	return x
}

// factor computes A. It returns false where C is singular in floats.
func (s *strategy) factor() bool {
	for i, row := range s.cov {
		copy(s.root[i], row[:i+1])
	}
	return cholesky(s.root)
}

// width is the largest standard deviation of a coordinate.
func (s *strategy) width() float64 {
	width := 0.0
	for i := range s.cov {
		width = max(width, s.step*math.Sqrt(s.cov[i][i]))
	}
	return width
}

// over reports whether the run has converged, or has nearly and is worse than the best value.
func (s *strategy) over(best float64) bool {
	width := s.width()
	return s.done || width < leastStep || width < poorStep && s.top < best
}
