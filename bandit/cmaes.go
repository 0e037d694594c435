package bandit

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/internal/stream"
)

// Evolution is a search by runs of CMA-ES, as a fold of evaluations in the order of time. The first run
// begins at the best one, and others at random points. A run ends where it has converged. It learns from its
// own samples only. Inputs are in the unit cube.
type Evolution struct {
	dim   int // coordinates
	seed  uint64
	best  *Evaluation // nil before the first success
	run   *CMAES      // nil before the first result of one
	since int64       // when the run before ended
	runs  int         // that have ended
}

const (
	firstSigma = 0.15  // standard deviation of a run's first samples
	leastSigma = 1e-9  // at which a run ends
	poorSigma  = 0.003 // at which a run ends that is worse than the best result
	redraws    = 10    // of a sample outside of the cube
	mostVain   = 10    // generations in vain that end a run, besides 30d over the population
)

// NewEvolution returns a search in some dimensions. The seed is that of random starts of runs.
func NewEvolution(dim int, seed uint64) *Evolution { return &Evolution{dim: dim, seed: seed} }

// Tell adds an evaluation at time now, with Y −Inf if it failed. It counts for the run if it is a
// sample of it, drawn at an earlier time.
func (v *Evolution) Tell(e Evaluation, sample bool, drawn, now int64) {
	if sample && drawn >= v.since && v.best != nil { // else it is a sample of an earlier run
		v.run = v.Distribution()
		v.run.tell(e.X, e.Y, drawn, now)
	}
	if !math.IsInf(e.Y, 0) && (v.best == nil || e.Y > v.best.Y) {
		v.best = &e
	}
	if v.run != nil && v.run.over(v.best.Y) {
		v.run, v.runs, v.since = nil, v.runs+1, now
	}
}

// Distribution returns what the next samples are drawn from, nil before the first success.
func (v *Evolution) Distribution() *CMAES {
	if v.run != nil || v.best == nil {
		return v.run
	}
	if v.runs == 0 {
		return NewCMAES(v.best.X, firstSigma)
	}
	rng, x := stream.New(stream.Derive(v.seed, "bkb evolution", uint64(v.runs))), make([]float64, v.dim)
	for c := range x {
		x[c] = rng.Float64()
	}
	return NewCMAES(x, firstSigma)
}

// CMAES is a run of CMA-ES (Hansen, The CMA evolution strategy: a tutorial, 2016, with its
// default parameters but without negative weights) that maximises. The covariance is σ²AAᵀ with
// a triangular A, which also takes the place of its symmetric root in the path of the step
// (Krause, Arbonès and Igel, 2016).
type CMAES struct {
	mean, path, stepPath []float64
	cov, root            [][]float64 // C and A
	step                 float64     // σ
	generations          int
	since                int64        // of the result that ended the generation before
	samples              []Evaluation // of the generation
	weights              []float64
	top                  float64 // best value
	best                 float64 // of earlier generations
	vain                 int     // generations since it rose
	done                 bool
}

// NewCMAES returns a run that begins at a mean.
func NewCMAES(mean []float64, step float64) *CMAES {
	d := len(mean)
	s := &CMAES{
		mean: slices.Clone(mean), path: make([]float64, d), stepPath: make([]float64, d),
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
func (s *CMAES) population() int { return 4 + int(3*math.Log(float64(len(s.mean)))) }

// Sample draws a point of the cube.
func (s *CMAES) Sample(rng *rand.Rand) []float64 {
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
func (s *CMAES) tell(x []float64, y float64, seen, end int64) {
	if s.top = max(s.top, y); seen < s.since {
		x = s.bounded(x)
	}
	if s.samples = append(s.samples, Evaluation{x, y}); len(s.samples) < s.population() {
		return
	}
	s.since = end
	slices.SortStableFunc(s.samples, func(a, b Evaluation) int { return cmp.Compare(b.Y, a.Y) })
	s.done = s.samples[0].Y == s.samples[len(s.weights)].Y
	s.update()
	s.samples = nil
	if s.vain++; s.top > s.best {
		s.best, s.vain = s.top, 0
	}
	s.done = s.done || !s.factor() || s.vain > mostVain+30*len(s.mean)/s.population()
}

// bounded returns x, or the point between it and the mean whose Mahalanobis distance is √d + 2d/(d+2).
func (s *CMAES) bounded(x []float64) []float64 {
	d, move, square := float64(len(x)), make([]float64, len(x)), 0.0
	for i, v := range x {
		move[i] = (v - s.mean[i]) / s.step
	}
	for _, v := range s.whiten(move) {
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
func (s *CMAES) update() {
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
		for i, v := range s.samples[k].X {
			moves[k][i] = (v - s.mean[i]) / s.step
			move[i] += w * moves[k][i]
		}
	}
	length := 0.0
	for i, v := range s.whiten(move) {
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

// whiten returns A⁻¹y.
func (s *CMAES) whiten(y []float64) []float64 {
	x := slices.Clone(y)
	solveL(s.root, x)
	return x
}

// factor computes A. It returns false where C is singular in floats.
func (s *CMAES) factor() bool {
	for i, row := range s.cov {
		copy(s.root[i], row[:i+1])
	}
	return cholesky(s.root)
}

// width is the largest standard deviation of a coordinate.
func (s *CMAES) width() float64 {
	width := 0.0
	for i := range s.cov {
		width = max(width, s.step*math.Sqrt(s.cov[i][i]))
	}
	return width
}

// over reports whether the run has converged, or has nearly and is worse than the best value.
func (s *CMAES) over(best float64) bool {
	width := s.width()
	return s.done || width < leastSigma || width < poorSigma && s.top < best
}
