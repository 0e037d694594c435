package acquire

import (
	"math"
	"runtime"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/study"
)

// acquisition chooses the next configurations under one model, one after another. Each is
// chosen with the earlier ones as pending trials.
type acquisition struct {
	*Chooser
	engine  *model.Engine
	outlook *model.Outlook // with pending trials
	view    *model.Outlook // of the last suggestion, outlook or the far model's
	beta    []float64      // widths of the confidence bounds
	added   map[uint64]struct{}
	chosen  [][]float64
	noise   []float64 // of an outcome of the first suggestion
	best    float64   // the largest UCB that may be feasible, found before any is chosen, for one objective
	tried   bool      // best is known
}

// on begins an acquisition.
func (c *Chooser) on(e *model.Engine, o *model.Outlook) *acquisition {
	c.elite.follow(e.Results)
	return &acquisition{Chooser: c, engine: e, outlook: o, added: make(map[uint64]struct{})}
}

// next makes the suggestion for a trial.
func (a *acquisition) next(trial int, seen study.Position) (study.Suggestion, []float64, error) {
	seed := a.trialSeed(trial)
	a.widths()
	t := a.turn(trial, seed, stream.New(seed))
	a.view = a.outlook
	var x []float64
	for _, propose := range a.sources() {
		var err error
		if x, err = propose(&t); err != nil {
			return study.Suggestion{}, nil, err
		} else if x != nil {
			break
		}
	}
	c, err := a.decode(x)
	if err != nil {
		return study.Suggestion{}, nil, err
	}
	a.added[model.Fingerprint(c)] = struct{}{}
	s := study.Suggestion{Config: c, Seed: seed, Seen: seen, Phase: t.phase}
	for _, b := range a.beta[:len(a.spec.Objectives)] {
		s.Beta = append(s.Beta, max(t.width, 1)*b)
	}
	p, bound := a.view.Explain(x, s.Beta)
	outcome := a.view.Outcome(x)
	p.StdDev[0] = min(p.StdDev[0], outcome) // intervals may have been too wide
	if a.noise == nil {
		a.noise = p.Noise
		a.noise[0] = a.engine.Calibration.Noise(outcome, p.StdDev[0])
	}
	s.Mean, s.StdDev, s.Bound = p.Mean, p.StdDev, bound
	return s, x, nil
}

// widths sets the widths of the confidence bounds.
func (a *acquisition) widths() {
	a.beta = a.beta[:0]
	for j := range a.engine.Event.Surfaces {
		a.beta = append(a.beta, a.width(a.engine, j, len(a.chosen)))
	}
}

// Sizes of the search for one suggestion.
const (
	wideCandidates = 512 // Sobol' points
	nearCandidates = 192 // moves of the best results
	manyInducing   = 200 // inducing points from which on fewer candidates are scored
	refining       = 32  // moves of the best candidates, of each size
	climbs         = 3
	// severalMoves is how many times as many moves there are with several objectives, whose gain has no
	// gradient here.
	severalMoves = 4
)

// newSearch returns a search with these sizes. It scores fewer candidates from many inducing points
// on.
func newSearch(o *model.Outlook, d *domain, many int) bandit.Search {
	m := o.InducingPoints()
	s := bandit.Search{
		Domain: d, Wide: wideCandidates, Near: nearCandidates, Refine: refining,
		Starts: climbs, Budget: min(max(4_000_000/max(m*m, 1), 16), 120), // evaluations of O(m²)
	}
	if m > many {
		s.Wide, s.Near = s.Wide/2, s.Near*2/3
	}
	return s
}

// search returns the candidates. They are all configurations of a small space, else those
// that it finds.
func (a *acquisition) search(t turn) *bandit.Pool {
	surface := &scorer{a, t}
	pool, err := new(bandit.Pool), error(nil)
	if all := a.finite.listed(); all != nil {
		err = pool.Add(surface, all)
	} else {
		s := newSearch(a.outlook, newDomain(a.spec.Space, a.outlook.Lengths(), nil), manyInducing)
		s.Surface, s.Seed, s.Parents, s.Climbers = surface, t.seed, a.parents(t.rng), runtime.GOMAXPROCS(0)
		if t.volume != nil {
			s.Near, s.Refine = severalMoves*s.Near, severalMoves*s.Refine
		}
		pool, err = s.Run(t.rng)
	}
	if all := a.arms.points; err == nil && all != nil && !a.arms.whole && a.noisy() {
		err = pool.Add(surface, all)
	}
	if err != nil {
		panic("acquire: a search: " + err.Error()) // a scorer has no errors
	}
	if len(a.spec.Objectives) == 1 && !t.exploit && len(a.chosen) == 0 {
		a.largestBound(pool)
	}
	return pool
}

// largestBound looks for the largest upper confidence bound among candidates that may be feasible.
func (a *acquisition) largestBound(pool *bandit.Pool) {
	upper := make([]float64, len(pool.Mean))
	for i, m := range pool.Mean {
		upper[i] = m + a.doubt()*math.Sqrt(pool.Variance[i])
	}
	const block = 64
	for some := range slices.Chunk(bandit.Largest(upper, len(upper)), block) {
		at := 0
		if a.outlook.Doubts() {
			var rows [][]float64
			for _, i := range some {
				rows = append(rows, pool.X[i])
			}
			at = slices.Index(a.outlook.Possible(pointsOf(rows), a.doubt()), true)
		}
		if at < 0 {
			continue
		}
		if u := upper[some[at]]; !a.tried || u > a.best {
			a.best, a.tried = u, true
		}
		return
	}
}

// survey looks for the largest upper confidence bound everywhere, with the effort of a
// suggestion. Its random numbers are those of the given trial.
func (a *acquisition) survey(trial int) turn {
	t := turn{width: 1, doubts: a.outlook.Doubts(), seed: a.trialSeed(trial)}
	t.rng = stream.New(t.seed)
	a.widths()
	t.pool = a.search(t)
	return t
}

// doubt returns the half width of the bounds of the gap, in standard deviations. It is wider
// than that of suggestions if intervals have missed outcomes.
func (a *acquisition) doubt() float64 {
	return a.beta[0] * max(a.engine.Calibration.Factor(), 1)
}

// gap returns the largest upper confidence bound found minus the lower one of the best
// result, in the objective's units. If it is not known, ok is false.
func (a *acquisition) gap() (gap float64, ok bool) {
	if !a.tried || len(a.spec.Objectives) > 1 || len(a.eliteOf(a.engine)) == 0 {
		return 0, false
	}
	good, lower := a.standing(a.engine), math.Inf(-1)
	for i, m := range good.mean {
		lower = max(lower, m-a.doubt()*math.Sqrt(good.variance[i]))
	}
	t := a.engine.Event.Surfaces[0].Target
	gap = max(t.Value(a.best)-t.Value(lower), 0)
	return min(gap, math.MaxFloat64), true
}
