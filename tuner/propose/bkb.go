package propose

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/cells"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// BKBOptions are the options of the proposer "bkb", in JSON under the names in
// parentheses.
type BKBOptions struct {
	// Start ("start", 1 to 10000) is the number of results before there is a
	// model; enqueued and added trials count. The default is [DefaultStart].
	Start int
	// Cap ("cap", 16 to 2048, default 256) is the most inducing points. Where trials
	// report, each takes up to five of them while there is room for all.
	Cap int
	// Theory ("beta": "practical", the default, or "theory") takes the width of
	// the confidence bounds from thesis Theorem 21, with norm 1 and probability
	// 0.9, in place of √(c·d·log(2t+1)).
	Theory bool
	// Width ("width", default 0.05) is c of the practical √(c·d·log(2t+1)).
	Width float64
	// ExploitEvery ("exploit_every", 0 to 1000, default 4): every so many trials
	// one is where the posterior mean is best; 0 for never.
	ExploitEvery int
	// ExploreEvery ("explore_every", 0 to 1000, default 0): every so many trials
	// one has bounds three times as wide; 0 for never.
	ExploreEvery int
	// OnDuplicate ("on_duplicate": "resample", the default, "replicate" or
	// "reuse") is what becomes of configurations that the study has already. With
	// replicate they are suggested again where that is best. With resample
	// something new is suggested, until all configurations have been; then they
	// are suggested again. Where there is next to no noise, what is so near to a
	// trial that it would tell nothing is not new. With reuse what is known of a configuration stands, and
	// nothing is ever run twice: when nothing new is left, suggestions end with
	// [ErrExhausted].
	OnDuplicate duplicates
	// StopGap ("stop_gap", default 0: never), with one objective: the study ends
	// when no configuration can be better than the best by more than this, in the
	// objective's units and as far as the confidence bounds hold. It does not end
	// before there are twice as many results as Start.
	StopGap float64
	// MinNoise ("min_noise", default 1e-6) is the least noise variance in units of
	// the variance of the results.
	MinNoise float64
	// KeepTail ("tail": "test", the default, or "keep") leaves values as they are
	// even if the tail test fires, up to a million robust standard deviations.
	KeepTail bool
	// Coarse ("refine": "gradient", the default, or "mutations") looks for
	// suggestions without the gradient.
	Coarse bool
	// Trust ("trust_region", 0 to 10000, default 5): with one objective and from so
	// many ordered coordinates on suggestions come from a trust region; 0 for never.
	Trust int
	// Patience ("patience", 0 to 10000, default 15 where there is a trust region,
	// else 0), with one objective: every so many suggestions in a row without an improvement double the
	// width of the bounds, up to eightfold; 0 for never.
	Patience int
	// Cost ("cost": "ignore", the default, "told" or "seconds"), with one
	// objective, weighs what may be gained against what it costs: what trials
	// were told to have cost, or how long they ran. The study's MaxCost is about what
	// was told, whichever it is.
	Cost costSource
	// Constraints ("constraints", a JSON object: {"latency": {"max": 10}}) is what
	// metrics told with outcomes must keep to: a completed trial that does not teaches
	// what it was told, and that its configuration is not feasible. It is not
	// recommended while another is.
	Constraints []constraint
	// IgnoreFailures ("failures": "learn", the default, or "ignore") has trials that
	// crashed say nothing. Else they are taken to be infeasible. Those that expired or
	// were cancelled say nothing anyway.
	IgnoreFailures bool
	// MaxStep ("max_step", default 0: inferred) is the step at which a report is
	// worth an outcome. Inferred, it is the median of the last steps of completed
	// trials.
	MaxStep int64
	// IgnoreReports ("reports": "learn", the default, or "ignore") has the model
	// learn from outcomes only; of pruned trials that have reported, nothing.
	IgnoreReports bool
	// Recommend ("recommend": "plausible", the default, "mean" or "lower") is what
	// trial of one objective is the best.
	Recommend recommendation
}

// recommendation is a way to choose the best trial.
type recommendation string

const (
	plausible recommendation = "plausible" // the best measured of those whose mean is next to the best one
	byMean    recommendation = "mean"
	byLower   recommendation = "lower" // the lower confidence bound
)

// duplicates is a policy for configurations that the study has already.
type duplicates string

const (
	resample  duplicates = "resample"
	replicate duplicates = "replicate"
	reuse     duplicates = "reuse"
)

// DefaultStart is how many results a space of d coordinates gets before there is
// a model of it.
func DefaultStart(d int) int { return min(max(d+2, 4), 16) }

func parseBKBOptions(text string, spec study.Spec) (BKBOptions, error) {
	o := study.ReadOptions("proposer.options", text)
	b := BKBOptions{
		Start:        int(o.Whole("start", int64(DefaultStart(spec.Space.Dim())), 1, 10_000)),
		Cap:          int(o.Whole("cap", 256, 16, 2048)),
		Theory:       o.Choice("beta", "practical", "theory") == "theory",
		Width:        o.Number("width", 0.05),
		ExploitEvery: int(o.Whole("exploit_every", 4, 0, 1000)),
		ExploreEvery: int(o.Whole("explore_every", 0, 0, 1000)),
		OnDuplicate:  duplicates(o.Choice("on_duplicate", string(resample), string(replicate), string(reuse))),
		StopGap:      o.Number("stop_gap", 0),
		MinNoise:     o.Number("min_noise", 1e-6),
		KeepTail:     o.Choice("tail", "test", "keep") == "keep",
		Coarse:       o.Choice("refine", "gradient", "mutations") == "mutations",
		Trust:        int(o.Whole("trust_region", 5, 0, 10_000)),
		Recommend:    recommendation(o.Choice("recommend", string(plausible), string(byMean), string(byLower))),

		Constraints:    readConstraints(o),
		IgnoreFailures: o.Choice("failures", "learn", "ignore") == "ignore",
		MaxStep:        o.Whole("max_step", 0, 0, math.MaxInt64),
		IgnoreReports:  o.Choice("reports", "learn", "ignore") == "ignore",
	}
	cost := o.Choice("cost", "ignore", "told", "seconds")
	b.Cost = map[string]costSource{"told": costTold, "seconds": costSeconds}[cost]
	patience := int64(0)
	if b.trusts(spec) {
		patience = 15
	}
	b.Patience = int(o.Whole("patience", patience, 0, 10_000))
	if b.Patience > 0 && len(spec.Objectives) != 1 {
		o.Fail("proposer.options.patience", fmt.Sprint(b.Patience), "is for studies with one objective", "leave it out")
	}
	if !(b.StopGap >= 0) {
		o.Fail("proposer.options.stop_gap", fmt.Sprint(b.StopGap), "must be ≥ 0", "")
	}
	if b.StopGap > 0 && len(spec.Objectives) != 1 {
		o.Fail("proposer.options.stop_gap", fmt.Sprint(b.StopGap), "is for studies with one objective", "leave it out")
	}
	if b.Cost != costIgnored && len(spec.Objectives) != 1 {
		o.Fail("proposer.options.cost", cost, "is for studies with one objective", "leave it out")
	}
	if !(b.Width > 0 && b.Width <= 100) {
		o.Fail("proposer.options.width", fmt.Sprint(b.Width), "must be > 0 and at most 100", "")
	}
	if !(b.MinNoise >= 1e-10 && b.MinNoise <= 1) {
		o.Fail("proposer.options.min_noise", fmt.Sprint(b.MinNoise), "must be 1e-10 to 1", "")
	}
	return b, o.Finish(BKB)
}

// The phases of suggestions that a model makes.
const (
	PhaseModel   = "model"   // upper confidence bound
	PhaseExploit = "exploit" // posterior mean
	PhaseExplore = "explore" // wide upper confidence bound
)

// bkb is the proposer "bkb".
type bkb struct {
	spec    study.Spec
	options BKBOptions
	results *results
	design  *design
	engine  *engine
	made    made
	finite  *enumeration
	all     *cells.Cells // of a finite space, when it was wanted
}

func newBKB(spec study.Spec, o BKBOptions) Proposer {
	return &bkb{spec: spec, options: o, results: newResults(spec, &o), design: newSobolDesign(spec)}
}

// engine is the model that is in effect, with the results since.
type engine struct {
	event    []byte // the model event
	model    anchored
	surfaces []*posterior
	expense  *posterior // nil for none
	told     int        // results that the surfaces have heard of
	elite    elite
	good     eliteBounds
}

// capped is the number of inducing points of the first surface that would have more
// but for the option cap; 0 if none would.
func (e *engine) capped() int {
	for j, p := range e.surfaces {
		if !e.exact(j) {
			return p.rank()
		}
	}
	return 0
}

// current returns the engine for the view that results were read from; nil if
// there is no model.
func (b *bkb) current(v View) (*engine, error) {
	a, ok := v.Anchor(v.Position())
	if !ok || b.spec.Space.Dim() == 0 {
		b.engine = nil
		return nil, nil
	}
	e := b.engine
	if e == nil || !bytes.Equal(e.event, a.Model) || e.told > len(b.results.list) {
		m, err := decodeModel(a.Model)
		if err != nil {
			return nil, err
		}
		if e, err = b.newEngine(m, b.results.upTo(a.Seen)); err != nil {
			return nil, err
		}
		e.event = a.Model
		b.engine = e
	}
	for ; e.told < len(b.results.list); e.told++ {
		r := &b.results.list[e.told]
		for j, p := range e.surfaces {
			for _, o := range b.samplesOf(r, j, &e.model.Surfaces[j]) {
				p.observe(o)
			}
		}
		if e.expense != nil {
			for _, o := range b.samplesOf(r, b.expense(), e.model.Expense) {
				e.expense.observe(o)
			}
		}
		e.elite.add(b, e, e.told)
	}
	return e, nil
}

func (b *bkb) newEngine(m anchored, n int) (*engine, error) {
	e := &engine{model: m, told: n}
	list := b.results.list[:n]
	for j := range m.Surfaces {
		p, err := b.posteriorOf(list, j, &m.Surfaces[j])
		if err != nil {
			return nil, err
		}
		e.surfaces = append(e.surfaces, p)
	}
	if m.Expense != nil {
		var err error
		if e.expense, err = b.posteriorOf(list, b.expense(), m.Expense); err != nil {
			return nil, err
		}
	}
	for i := range list {
		e.elite.add(b, e, i)
	}
	return e, nil
}

// posteriorOf is that of quantity j after the results.
func (b *bkb) posteriorOf(list []result, j int, s *surface) (*posterior, error) {
	k, err := b.kernelOf(s)
	if err != nil {
		return nil, fmt.Errorf("a model event: %w", err)
	}
	samples := make([]sample, 0, len(list))
	for i := range list {
		samples = append(samples, b.samplesOf(&list[i], j, s)...)
	}
	return rebuilt(k, s.Noise, s.Mean, b.options.Cap, s.Capped, b.inputs(list, j, s), samples), nil
}

// Propose implements [Proposer].
func (b *bkb) Propose(ctx context.Context, v View, n int) (Proposal, error) {
	e, err := b.ready(v)
	if err != nil {
		return Proposal{}, err
	}
	if e == nil {
		p, err := b.design.Propose(ctx, v, n)
		p.UsefulWorkers = max(b.options.Start-len(b.results.list), 1)
		if b.spec.Space.Dim() == 0 {
			p.UsefulWorkers = 0
		}
		return p, err
	}
	a := b.newAcquisition(e)
	if b.options.StopGap > 0 && b.options.trusts(b.spec) {
		a.survey(v.Trials())
	}
	var p Proposal
	for i := range n {
		if err := ctx.Err(); err != nil {
			return Proposal{}, err
		}
		s, x, err := a.next(v.Trials()+i, v.Position())
		if errors.Is(err, ErrExhausted) && i > 0 {
			break
		} else if err != nil {
			return Proposal{}, err
		}
		p.Suggestions = append(p.Suggestions, s)
		if i+1 < n {
			a.pull(x)
		}
		a.counted(x)
	}
	p.UsefulWorkers, p.Warnings, p.Capped = a.usefulWorkers(), b.warnings(e), e.capped()
	if gap, ok := a.gap(); ok && len(b.results.pending) == 0 {
		p.Gap = gap
		p.Converged = b.options.StopGap > 0 && gap <= b.options.StopGap && len(b.results.list) >= 2*b.options.Start
	}
	return p, nil
}

// beta is the width b of the confidence bounds for a surface, with so many
// suggestions beyond those that the results know of.
func (b *bkb) beta(e *engine, j, beyond int) float64 {
	if b.options.Theory {
		return b.theory(e, j)
	}
	t := float64(len(b.results.list) + len(b.results.pending) + beyond)
	return math.Sqrt(b.options.Width * max(e.model.Active, 1) * math.Log(2*t+1))
}

// theory is b of [bandit.Theory] for F = 1 and δ = 0.1. While all points are inducing
// that is F + √(log det V + 2 log(1/δ)). Else it is thesis Theorem 21's with ε = ½,
// by the effective dimension, which a sample more raises by at most 1 since the model
// event that it was found at. The theorem wants [bandit.TheoryOversampling] inducing
// points of each dimension, and there are oversampling: so then it is no guarantee.
func (b *bkb) theory(e *engine, j int) float64 {
	p, s := e.surfaces[j], &e.model.Surfaces[j]
	rows := 1
	if s.Fidelity != nil {
		rows += lowRows
	}
	return bandit.Theory{Norm: 1, Delta: 0.1, Epsilon: 0.5, ByDimension: !e.exact(j)}.Beta(bandit.State{
		Exact: e.exact(j), InformationGain: max(p.gain(), 0),
		EffectiveDimension: s.Dimension + float64(rows*(e.told-e.model.Results)),
		Step:               rows*e.told + 1, Bound: p.k.factor, NoiseVariance: p.noise,
	})
}

// exact tells whether all that surface j has heard of is in the span of its inducing
// points, so that it is the posterior itself.
func (e *engine) exact(j int) bool {
	return !e.model.Surfaces[j].Capped && e.surfaces[j].rank() < e.surfaces[j].limit
}

// elite is what candidates are near to, of results that keep to all constraints: of
// one objective those with the best targets, of several the front.
type elite struct {
	members []int // of results.list
	scores  []float64
}

const eliteSize = 32

func (l *elite) add(b *bkb, e *engine, i int) {
	r := &b.results.list[i]
	if r.y == nil || !r.feasible {
		return
	}
	if len(b.spec.Objectives) > 1 {
		l.addFront(b, e, i)
		return
	}
	score := r.y[0].value
	at, _ := slices.BinarySearchFunc(l.scores, score, func(have, s float64) int {
		if have >= s {
			return -1
		}
		return 1
	})
	if at >= eliteSize {
		return
	}
	l.members, l.scores = slices.Insert(l.members, at, i), slices.Insert(l.scores, at, score)
	if len(l.members) > eliteSize {
		l.members, l.scores = l.members[:eliteSize], l.scores[:eliteSize]
	}
}

// eliteBounds is what surface 0 says of the elite, when told was so many.
type eliteBounds struct {
	told           int
	x              *kernel.Points[float64]
	mean, variance []float64
}

// bounds returns it for the results so far, without pending trials.
func (e *engine) bounds(b *bkb) *eliteBounds {
	if e.good.x == nil || e.good.told != e.told {
		x := kernel.NewPoints[float64](len(e.elite.members), b.spec.Space.Dim(), nil)
		for i, m := range e.elite.members {
			copy(x.Row(i), b.results.list[m].x)
		}
		mean, variance := e.surfaces[0].predict(x)
		e.good = eliteBounds{e.told, x, mean, variance}
	}
	return &e.good
}

// addFront keeps the results that no other dominates, those that dominate most if
// there are many (see thin).
func (l *elite) addFront(b *bkb, e *engine, i int) {
	dominates := func(p, q []measure) bool {
		for j := range p {
			if p[j].value < q[j].value {
				return false
			}
		}
		return true
	}
	y := b.results.list[i].y
	for _, m := range l.members {
		if dominates(b.results.list[m].y, y) {
			return
		}
	}
	l.members = slices.DeleteFunc(l.members, func(m int) bool { return dominates(y, b.results.list[m].y) })
	l.members = append(l.members, i)
	if len(l.members) < frontMost {
		return
	}
	points := make([][]float64, len(l.members))
	for at, m := range l.members {
		for j, v := range b.results.list[m].y {
			points[at] = append(points[at], e.model.Surfaces[j].Target.of(v.value))
		}
	}
	var kept []int
	for _, at := range thin(points, frontKept) {
		kept = append(kept, l.members[at])
	}
	l.members = kept
}

// trialSeed is the seed of what is random about a trial's suggestion.
func (b *bkb) trialSeed(trial int) uint64 {
	return stream.Derive(b.spec.Seed, "bkb", uint64(trial))
}

// decode makes a configuration of a point and moves the point onto it.
func (b *bkb) decode(x []float64) (space.Config, error) {
	c, err := b.spec.Space.Decode(x)
	if err == nil {
		err = b.spec.Space.Encode(c, x)
	}
	return c, err
}
