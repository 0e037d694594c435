package propose

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/cells"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// acquisition chooses the next configurations under one model, one after
// another, each with those before as pending.
type acquisition struct {
	b        *bkb
	e        *engine
	surfaces []*posterior // with pending trials
	own      bool         // they are not the engine's
	beta     []float64
	added    map[uint64]struct{} // chosen here
	chosen   [][]float64
	best     float64 // the largest UCB found before any is chosen, of one objective
	tried    bool    // best is there
}

func (b *bkb) newAcquisition(e *engine) *acquisition {
	a := &acquisition{b: b, e: e, surfaces: e.surfaces, added: make(map[uint64]struct{})}
	open := b.results.pending
	open = open[max(0, len(open)-maxPending):]
	for _, p := range open {
		a.hear(p)
	}
	for _, p := range open {
		a.pull(p.x)
	}
	return a
}

// hear takes in what a trial that runs has reported.
func (a *acquisition) hear(p pending) {
	for j := range a.b.feasibility() {
		for _, o := range a.e.model.Surfaces[j].lower(nil, p.x, p.low, j, runs) {
			a.detach()
			a.surfaces[j].observe(o)
		}
	}
}

// maxPending is how many pending trials, the latest, a suggestion takes account
// of: each costs O(m²).
const maxPending = 512

// pull makes x pending.
func (a *acquisition) pull(x []float64) {
	a.detach()
	for _, p := range a.surfaces {
		p.pull(x)
	}
}

// detach makes the surfaces the acquisition's own.
func (a *acquisition) detach() {
	if a.own {
		return
	}
	a.surfaces = slices.Clone(a.surfaces)
	for j, p := range a.surfaces {
		a.surfaces[j] = p.clone()
	}
	a.own = true
}

func (a *acquisition) counted(x []float64) { a.chosen = append(a.chosen, x) }

// wish is what one suggestion looks for.
type wish struct {
	exploit bool
	explore bool
	width   float64   // of the confidence bounds, in units of beta
	weights []float64 // of several objectives
	ideal   []float64
	feature bool    // feasibility is modelled
	trusted *box    // nil for everywhere
	thrift  *thrift // nil where costs play no part
}

// next makes the suggestion for a trial.
func (a *acquisition) next(trial int, seen study.Position) (study.Suggestion, []float64, error) {
	seed := a.b.trialSeed(trial)
	rng := stream.New(seed)
	a.widths()
	w := a.wish(trial, rng)
	pool := newPool(a, w)
	pool.search(seed, rng)
	c, x, err := pool.choose(rng)
	if err != nil {
		return study.Suggestion{}, nil, err
	}
	a.added[fingerprint(c)] = struct{}{}
	s := study.Suggestion{Config: c, Seed: seed, Seen: seen, Phase: PhaseModel}
	switch {
	case w.exploit:
		s.Phase = PhaseExploit
	case w.explore:
		s.Phase = PhaseExplore
	}
	s.Mean, s.StdDev = a.explain(x)
	s.Bound, s.Beta = a.bounds(x, max(w.width, 1))
	return s, x, nil
}

// widths sets those of the confidence bounds.
func (a *acquisition) widths() {
	a.beta = a.beta[:0]
	for j := range a.e.surfaces {
		a.beta = append(a.beta, a.b.beta(a.e, j, len(a.chosen)))
	}
}

// wish is the next suggestion's.
func (a *acquisition) wish(trial int, rng *rand.Rand) wish {
	every := a.b.options.ExploitEvery
	w := wish{
		exploit: every > 0 && trial%every == every-1,
		feature: len(a.surfaces) > a.b.feasibility(),
		width:   1,
	}
	if k := a.b.options.ExploreEvery; k > 0 && trial%k == k/2 {
		w.explore = !w.exploit
	}
	switch {
	case w.exploit:
		w.width = 0
	case w.explore:
		w.width = 3
	default:
		w.width = a.b.wider()
	}
	if !w.exploit {
		w.thrift = a.spend()
	}
	if !w.explore {
		w.trusted = a.trusted()
	}
	if k := len(a.b.spec.Objectives); k > 1 {
		sum := 0.0
		for range k {
			v := rng.ExpFloat64()
			w.weights = append(w.weights, v)
			sum += v
		}
		for j := range w.weights {
			w.weights[j] /= sum
		}
		w.ideal = slices.Repeat([]float64{math.Inf(-1)}, k)
		if len(a.e.elite.members) == 0 { // none keeps to the constraints
			clear(w.ideal)
		}
		for _, i := range a.e.elite.members {
			for j, m := range a.b.results.list[i].y {
				w.ideal[j] = max(w.ideal[j], a.e.model.Surfaces[j].Target.of(m.value))
			}
		}
	}
	return w
}

// chebyshev is the augmented Chebyshev scalarisation (Knowles 2006), larger
// being better.
func (w *wish) chebyshev(u []float64) float64 {
	worst, sum := math.Inf(1), 0.0
	for j, v := range u {
		d := w.weights[j] * (v - w.ideal[j])
		worst = min(worst, d)
		sum += d
	}
	return worst + 0.05*sum
}

// pool is candidates with their scores.
type pool struct {
	a      *acquisition
	w      wish
	xs     [][]float64
	scores []float64
	// Of the first objective.
	mean, variance []float64
}

func newPool(a *acquisition, w wish) *pool { return &pool{a: a, w: w} }

// add scores the rows of x.
func (p *pool) add(x *kernel.Points[float64]) {
	if x.Len() == 0 {
		return
	}
	scores, mean, variance := p.a.score(p.w, x)
	p.scores, p.mean, p.variance = append(p.scores, scores...), append(p.mean, mean...), append(p.variance, variance...)
	for i := range x.Len() {
		p.xs = append(p.xs, x.Row(i))
	}
}

// search fills the pool: candidates from everywhere, smaller and smaller mutations
// of the best ones, and what the gradient makes of those.
func (p *pool) search(seed uint64, rng *rand.Rand) {
	a, w := p.a, p.w
	p.add(a.candidates(w, seed, rng))
	if a.b.enumerated() != nil {
		return
	}
	for _, scale := range []float64{0.1, 0.02, 0.004} {
		p.add(a.around(w, p.top(4), 32, scale, rng))
	}
	if len(a.surfaces) == 1 && w.thrift == nil && !a.b.options.Coarse {
		p.climb()
	}
}

// score is the acquisition function; it comes with the prediction of the first
// objective.
func (a *acquisition) score(w wish, x *kernel.Points[float64]) (out, first, spread []float64) {
	k := len(a.b.spec.Objectives)
	bounds := make([][]float64, k)
	for j := range k {
		mean, variance := a.surfaces[j].predict(x)
		if j == 0 {
			first, spread = slices.Clone(mean), variance
		}
		if !w.exploit {
			for i, m := range mean {
				sd := a.beta[j] * math.Sqrt(variance[i])
				mean[i] += w.width * sd
				if k == 1 && w.trusted == nil && len(a.chosen) == 0 && (!a.tried || m+sd > a.best) {
					a.best, a.tried = m+sd, true
				}
			}
		}
		bounds[j] = mean
	}
	out = bounds[0]
	if k > 1 {
		out = make([]float64, x.Len())
		u := make([]float64, k)
		for i := range out {
			for j := range u {
				u[j] = bounds[j][i]
			}
			out[i] = w.chebyshev(u)
		}
	}
	if w.thrift != nil {
		w.thrift.weigh(a, out, x)
	}
	if w.feature {
		mean, variance := a.surfaces[k].predict(x)
		for i := range out {
			out[i] += math.Log(max(feasible(mean[i], variance[i]), 1e-6))
		}
	}
	return out, first, spread
}

// feasible is the probability that a label of ±1 with this prediction is
// positive.
func feasible(mean, variance float64) float64 {
	return 0.5 * math.Erfc(-mean/math.Sqrt(2*(variance+0.05)))
}

// top returns the n best candidates.
func (p *pool) top(n int) [][]float64 {
	var out [][]float64
	for _, i := range p.order(n) {
		out = append(out, p.xs[i])
	}
	return out
}

// order returns the candidates by score, best first; the first n at least.
func (p *pool) order(n int) []int {
	order := make([]int, len(p.scores))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, k int) int {
		return cmp.Or(cmp.Compare(p.scores[k], p.scores[i]), i-k)
	})
	return order[:min(n, len(order))]
}

// choose returns the best candidate that the study does not have, unless
// duplicates are welcome, rather one that is not known; then anything that it does
// not have; and at last the best candidate or [ErrExhausted], as the options say.
func (p *pool) choose(rng *rand.Rand) (space.Config, []float64, error) {
	b := p.a.b
	order := p.order(len(p.scores))
	known := p.known()
	if i := slices.IndexFunc(order, func(i int) bool { return !known(i) }); i > 0 {
		order = slices.Concat(order[i:], order[:i])
	}
	for _, i := range order {
		x := slices.Clone(p.xs[i])
		c, err := b.decode(x)
		if err != nil {
			return c, nil, err
		}
		if b.options.OnDuplicate == replicate || !p.a.has(c) {
			return c, x, nil
		}
	}
	for range maxPassed {
		x := make([]float64, b.spec.Space.Dim())
		for c := range x {
			x[c] = rng.Float64()
		}
		c, err := b.decode(x)
		if err != nil {
			return c, nil, err
		}
		if !p.a.has(c) {
			return c, x, nil
		}
	}
	c, found, err := p.a.untried()
	switch {
	case err != nil:
		return c, nil, err
	case found:
		x, err := b.results.encode(c)
		return c, x, err
	case b.options.OnDuplicate == reuse:
		return c, nil, ErrExhausted
	}
	x := slices.Clone(p.xs[order[0]])
	c, err = b.decode(x)
	return c, x, err
}

// untried returns a configuration that the study does not have; found is false
// if it has all. It looks at one more than the study has, at most.
func (a *acquisition) untried() (c space.Config, found bool, err error) {
	b := a.b
	if b.all == nil {
		all, err := cells.Of(b.spec.Space, cells.MaxPoints, nil)
		if err != nil && b.options.OnDuplicate != reuse {
			return c, false, nil // too many to know
		} else if err != nil {
			return c, false, err
		}
		b.all = all
	}
	for i := range b.all.Total() {
		if c := b.all.At(i); !a.has(c) {
			return c, true, nil
		}
	}
	return c, false, nil
}

// has tells whether the study has a configuration already.
func (a *acquisition) has(c space.Config) bool {
	f := fingerprint(c)
	_, before := a.b.results.seen[f]
	_, now := a.added[f]
	return before || now
}

// explain returns the prediction at x in the objectives' units.
func (a *acquisition) explain(x []float64) (mean, sd []float64) {
	row := kernel.NewPoints(1, len(x), x)
	for j, o := range a.b.spec.Objectives {
		m, v := a.surfaces[j].predict(row)
		t := a.e.model.Surfaces[j].Target
		y := t.value(m[0])
		if o.Direction == study.Minimize {
			y = -y
		}
		mean, sd = append(mean, y), append(sd, t.deviation(m[0], math.Sqrt(v[0])))
	}
	return mean, sd
}

// bounds returns the optimistic confidence bounds at x, in the objectives' units,
// and their widths, so many times the usual.
func (a *acquisition) bounds(x []float64, times float64) (bound, beta []float64) {
	row := kernel.NewPoints(1, len(x), x)
	for j, o := range a.b.spec.Objectives {
		m, v := a.surfaces[j].predict(row)
		width := times * a.beta[j]
		y := a.e.model.Surfaces[j].Target.value(m[0] + width*math.Sqrt(v[0]))
		if o.Direction == study.Minimize {
			y = -y
		}
		bound, beta = append(bound, y), append(beta, width)
	}
	return bound, beta
}

// usefulWorkers is how many trials may run at once by the rule of BBKB: 1 +
// Σ σ²/ξ² ≤ 2, with the variances without pending trials; at least one.
func (a *acquisition) usefulWorkers() int {
	rows := make([][]float64, 0, len(a.b.results.pending)+len(a.chosen))
	for _, p := range a.b.results.pending {
		rows = append(rows, p.x)
	}
	rows = append(rows, a.chosen...)
	if len(rows) == 0 {
		return 1
	}
	x := kernel.NewPoints[float64](len(rows), len(rows[0]), nil)
	for i, r := range rows {
		copy(x.Row(i), r)
	}
	p := a.e.surfaces[0]
	_, variance := p.predict(x)
	sum := 0.0
	for i, v := range variance {
		if sum += v / p.noise; sum > 1 {
			return max(i, 1)
		}
	}
	last := variance[len(variance)-1] / p.noise
	return min(len(rows)+int((1-sum)/max(last, 1e-3)), 1000)
}

// survey looks for the largest upper confidence bound everywhere, as hard as for a
// suggestion, with what is random about the given trial.
func (a *acquisition) survey(trial int) {
	seed := a.b.trialSeed(trial)
	a.widths()
	newPool(a, wish{width: 1}).search(seed, stream.New(seed))
}

// gap is the largest upper confidence bound found less the lower one of the best
// result, in the objective's units; ok is false if it is not known.
func (a *acquisition) gap() (gap float64, ok bool) {
	if !a.tried || len(a.b.spec.Objectives) > 1 || len(a.e.elite.members) == 0 {
		return 0, false
	}
	good, lower := a.e.bounds(a.b), math.Inf(-1)
	for i, m := range good.mean {
		lower = max(lower, m-a.beta[0]*math.Sqrt(good.variance[i]))
	}
	t := a.e.model.Surfaces[0].Target
	return clampFinite(max(t.value(a.best)-t.value(lower), 0)), true
}
