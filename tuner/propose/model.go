package propose

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/study"
)

// modelVersion is that of the encoding of model events. Version 2 has Knee of target
// and Spread of fidelity, which a program that knows version 1 alone would pass over
// and suggest otherwise; here an event of version 1 is one without them. From version
// 3 on late results are results, of the model and of suggestions while it is in effect;
// with one of version 2 or 1 they are not, as they were not when it was made. So the
// log tells of each suggestion what it was made from.
const (
	modelVersion = 3
	lateVersion  = 3
	firstVersion = 1
)

// anchored is the content of a model event: all that does not follow from the
// study's results alone.
type anchored struct {
	Version int `json:"version"`
	Results int `json:"results"` // the model was made from so many
	Fitted  int `json:"fitted"`  // and its hyper-parameters from so many
	// Active is the mean number of active coordinates.
	Active float64 `json:"active"`
	// Surfaces are one for each objective, then that of feasibility if there
	// have been infeasible trials.
	Surfaces []surface `json:"surfaces"`
	// Expense is the model of the logarithm of the cost.
	Expense *surface `json:"expense,omitempty"`
}

// surface is the model of one quantity.
type surface struct {
	Target     target    `json:"target"`
	Theta      []float64 `json:"theta"` // of the kernel
	Noise      float64   `json:"noise"`
	Mean       float64   `json:"mean"`
	Dictionary []int     `json:"dictionary"` // inducing points, by trial
	// Rows are which of a trial's samples they are, if they are not all the first, and
	// Epochs of which of its late results, 0 for its outcome, if they are not all of that.
	Rows      []int     `json:"rows,omitempty"`
	Epochs    []int     `json:"epochs,omitempty"`
	Fidelity  *fidelity `json:"fidelity,omitempty"`
	Capped    bool      `json:"capped,omitempty"`
	Dimension float64   `json:"dimension"` // effective
	Gain      float64   `json:"gain"`      // log det V
}

// Schedule of model events, in results.
const (
	maxStep   = 512 // while there are no more than maxStep·stepShare results
	stepShare = 64  // later the step is so small a part of the results
	fitRatio  = 1.2 // growth between fits
)

// step is how many results after a model event the next one is due, and what a
// restart replays at most. It grows with the results in the end, as what a model
// event costs does.
func step(results int) int {
	return min(max(results/5, 2), max(maxStep, results/stepShare))
}

// lag is how many results more there may be before it must be there.
func lag(results int) int {
	if results < 128 {
		return 0
	}
	return min(results/64, 16)
}

// milestone is the number of results that the model event due at n results is
// made from; 0 if none is due. last is that of the event before, 0 for none.
func (b *bkb) milestone(last, n int) int {
	c := 0
	if last == 0 {
		if c = b.first(); c == 0 {
			return 0
		}
	} else if c = last + step(last); c+lag(c) > n {
		return 0
	}
	for c+step(c)+lag(c+step(c)) <= n {
		c += step(c)
	}
	return c
}

// first is the number of results from which the first model is made: the start
// design's, of which two are measured; 0 if there are not so many.
func (b *bkb) first() int {
	measured := 0
	for i, r := range b.results.list {
		if r.y != nil {
			measured++
		}
		if i+1 >= b.options.Start && measured >= 2 {
			return i + 1
		}
	}
	return 0
}

// Anchor implements [Anchorer].
func (b *bkb) Anchor(ctx context.Context, v View) (study.Anchor, bool, error) {
	if b.spec.Space.Dim() == 0 {
		return study.Anchor{}, false, nil
	}
	if err := b.results.follow(v, true); err != nil {
		return study.Anchor{}, false, err
	}
	var before anchored
	if a, ok := v.Anchor(v.Position()); ok {
		var err error
		if before, err = decodeModel(a.Model); err != nil {
			return study.Anchor{}, false, err
		}
	}
	c := b.milestone(before.Results, len(b.results.list))
	if c == 0 && before.deaf() && len(b.results.heardOf) > 0 && b.first() > 0 {
		c = len(b.results.list)
	}
	if c == 0 {
		return study.Anchor{}, false, nil
	}
	if b.made.results != c || b.made.before != before.Results {
		text, err := b.remake(context.WithoutCancel(ctx), before, c, modelVersion)
		if err != nil {
			return study.Anchor{}, false, err
		}
		b.made = made{before.Results, c, text}
	}
	return study.Anchor{Seen: b.results.list[c-1].end, Effective: v.Position() + 1, Model: b.made.model}, true, nil
}

// deaf tells whether there is a model and late results do not count while it is in
// effect.
func (m *anchored) deaf() bool { return m.Version > 0 && m.Version < lateVersion }

// counting tells whether late results count in v, by the model that is in effect there.
func (b *bkb) counting(v View) (bool, error) {
	a, ok := v.Anchor(v.Position())
	if !ok {
		return true, nil
	}
	if b.engine != nil && bytes.Equal(b.engine.event, a.Model) {
		return !b.engine.model.deaf(), nil
	}
	m, err := decodeModel(a.Model)
	return !m.deaf(), err
}

// remake makes and encodes the model of the first c results, under a version's number.
func (b *bkb) remake(ctx context.Context, before anchored, c, version int) ([]byte, error) {
	m, err := b.newModel(ctx, before, c)
	if err != nil {
		return nil, err
	}
	m.Version = version
	text, err := json.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encoding a model: %w", err)
	}
	return text, nil
}

// made is the last model that was computed.
type made struct {
	before, results int
	model           []byte
}

func decodeModel(text []byte) (anchored, error) {
	var m anchored
	if err := json.Unmarshal(text, &m); err != nil {
		return m, fmt.Errorf("a model event: %w", err)
	}
	if m.Version < firstVersion || m.Version > modelVersion {
		return m, fmt.Errorf("a model event of version %d, this program knows %d to %d", m.Version, firstVersion, modelVersion)
	}
	return m, nil
}

// newModel makes the model of the first c results.
func (b *bkb) newModel(ctx context.Context, before anchored, c int) (anchored, error) {
	list := b.results.list[:c]
	m := anchored{Results: c, Fitted: before.Fitted, Active: b.activeMean(list)}
	refit := before.Fitted == 0 || float64(c) >= fitRatio*float64(before.Fitted)
	infeasible := slices.ContainsFunc(list, func(r result) bool { return !r.feasible })
	quantities := len(b.spec.Objectives)
	if infeasible {
		quantities++
	}
	if refit = refit || len(before.Surfaces) != quantities; refit {
		m.Fitted = c
	}
	for j := range quantities {
		var old *surface
		if j < len(before.Surfaces) {
			old = &before.Surfaces[j]
		}
		s, err := b.newSurface(ctx, list, j, old, refit)
		if err != nil {
			return m, err
		}
		m.Surfaces = append(m.Surfaces, s)
	}
	var err error
	m.Expense, err = b.newExpense(ctx, list, before.Expense, refit)
	return m, err
}

// feasibility is the number of the surface of feasibility.
func (b *bkb) feasibility() int { return len(b.spec.Objectives) }

// newSurface makes the model of quantity j, from the one before if there is one.
func (b *bkb) newSurface(ctx context.Context, list []result, j int, old *surface, refit bool) (surface, error) {
	s := surface{Target: target{Spread: 1, Scale: 1}, Noise: 0.01}
	if j != b.feasibility() {
		if j < b.feasibility() {
			s.Fidelity = b.newFidelity(list, j, old)
		}
		var values []float64
		for i := range list {
			if v, ok := b.valueOf(&list[i], j, &s); ok {
				values = append(values, v)
			}
		}
		s.Target = newTarget(values, b.options.KeepTail)
	}
	k := priorCovariance(b.spec.Space)
	if old != nil {
		s.Noise = old.Noise
		var err error
		if k, err = newCovariance(k.ordered, k.nominal, old.Theta); err != nil {
			return s, err
		}
	}
	if s.Fidelity != nil {
		var err error
		if k, err = k.withFidelity(s.Fidelity.Length); err != nil {
			return s, err
		}
	}
	s.Theta, s.Mean = k.theta(), 0
	if refit {
		if err := b.fit(ctx, list, j, &s, k); err != nil {
			return s, err
		}
	} else if old != nil {
		s.Mean = old.Mean
	}
	return s, b.chooseDictionary(list, j, &s, old)
}

// valueOf is what a result says of an objective, if need be by its last report,
// or the logarithm of the cost; ok is false if nothing.
func (b *bkb) valueOf(r *result, j int, s *surface) (v float64, ok bool) {
	if j == b.expense() {
		return math.Log(r.cost), r.cost > 0
	}
	return s.Fidelity.value(r, j)
}

// samplesOf is what a result tells surface s of quantity j: its outcome, if it
// has one, and what it reported.
func (b *bkb) samplesOf(r *result, j int, s *surface) []sample {
	if j == b.feasibility() {
		if r.feasible {
			return []sample{{x: r.x, y: 1}}
		}
		return []sample{{x: r.x, y: -1}}
	}
	if j == b.expense() {
		if v, ok := b.valueOf(r, j, s); ok {
			return []sample{{x: r.x, y: s.Target.of(v)}}
		}
		return nil
	}
	if r.y == nil {
		return s.lower(nil, r.x, r.low, j, stopped)
	}
	return s.lower([]sample{s.outcome(r.x, r.y[j])}, r.x, r.low, j, finished)
}

// outcome is what a measured objective tells.
func (s *surface) outcome(x []float64, m measure) sample {
	out := sample{x: x, y: s.Target.of(m.value)}
	if !math.IsNaN(m.stdErr) {
		se := min(m.stdErr*s.Target.slope(m.value), 1e3)
		out.extra = se * se
	} else if m.count > 1 {
		out.extra = s.Noise/float64(m.count) - s.Noise
	}
	return out
}

// Sizes of fits.
const (
	fitPoints      = 160
	replicatesSeen = 4
	fitIterations  = 40
)

// fit chooses hyper-parameters by their posterior density (gp.Fit, priors of
// gp.DimensionScaled), on at most fitPoints results: the best third and others
// drawn from the study's seed.
func (b *bkb) fit(ctx context.Context, list []result, j int, s *surface, warm *covariance) error {
	var x, y, noise []float64
	for _, it := range b.toFit(list, j, s) {
		spread := 0.0
		if it.m.count > 1 && math.IsNaN(it.m.stdErr) {
			spread = math.Sqrt(it.m.within/float64(it.m.count-1)) * s.Target.slope(it.m.value)
		}
		for _, e := range replicates(it.m.count, min(spread, 1e3)) {
			x = append(append(x, it.x...), make([]float64, warm.dim()-len(it.x))...)
			y, noise = append(y, it.y+e), append(noise, max(it.extra, 0))
		}
	}
	d := b.spec.Space.Dim()
	opts := gp.DimensionScaled(d)
	opts.NoiseVariance, opts.Starts, opts.MaxIterations, opts.MinNoise = s.Noise, 2, fitIterations, b.options.MinNoise
	opts.NoisePrior = gp.LogNormal{Mu: -2, Sigma: 2} // see doc.go
	if d > manyCoordinates {
		opts.MaxIterations = 15
	}
	if j == b.feasibility() {
		opts.MinNoise = 1e-2
	}
	if s.Fidelity != nil {
		withLength(&opts)
	}
	fit, err := gp.Fit(ctx, warm, gp.Data{X: kernel.NewPoints(len(y), warm.dim(), x), Y: y, Noise: noise}, opts)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return nil //nolint:nilerr // no start has a density: the old hyper-parameters stay
	}
	found := fit.Kernel.(*covariance)
	s.Theta = found.theta()
	if s.Fidelity != nil {
		s.Fidelity.Length = 1 / found.decay
	}
	s.Theta[0] *= fit.Scale * fit.Scale
	s.Noise = fit.NoiseVariance * fit.Scale * fit.Scale
	s.Mean = fit.Shift
	return nil
}

// fitted is a sample with what it was measured as, if it is an outcome.
type fitted struct {
	sample
	m measure
}

// toFit returns the samples to fit to: all that were measured, or of more than
// fitPoints the best third of so many and others drawn from the study's seed. What
// the model itself made of stopped trials would only confirm what it was made with.
func (b *bkb) toFit(list []result, j int, s *surface) []fitted {
	var items []fitted
	for i := range list {
		for n, o := range b.samplesOf(&list[i], j, s) {
			if o.inferred {
				continue
			}
			it := fitted{sample: o}
			if n == 0 && list[i].y != nil && j < b.feasibility() {
				it.m = list[i].y[j]
			}
			items = append(items, it)
		}
	}
	if len(items) > fitPoints {
		items = byTarget(items)
		rng := stream.New(stream.Derive(b.spec.Seed, "bkb fit", uint64(len(list))))
		rest := items[fitPoints/3:]
		rng.Shuffle(len(rest), func(i, k int) { rest[i], rest[k] = rest[k], rest[i] })
		items = items[:fitPoints]
	}
	return items
}

// byTarget returns the items with the largest targets first, of equal ones in
// order.
func byTarget(items []fitted) []fitted {
	type place struct {
		y float64
		i int
	}
	places := make([]place, len(items)) // smaller than items, and all different
	for i := range items {
		places[i] = place{items[i].y, i}
	}
	slices.SortFunc(places, func(a, c place) int { return cmp.Or(cmp.Compare(c.y, a.y), a.i-c.i) })
	out := make([]fitted, len(items))
	for i, p := range places {
		out[i] = items[p.i]
	}
	return out
}

// replicates are a few deviations with mean 0 and the given standard deviation,
// for a mean of n values.
func replicates(n int, spread float64) []float64 {
	n = min(max(n, 1), replicatesSeen)
	out, square := make([]float64, n), 0.0
	if n == 1 {
		return out
	}
	for i := range out {
		out[i] = float64(i) - float64(n-1)/2
		square += out[i] * out[i]
	}
	for i := range out {
		out[i] *= spread * math.Sqrt(float64(n-1)/square)
	}
	return out
}

// activeMean is the mean number of active coordinates.
func (b *bkb) activeMean(list []result) float64 {
	axes := b.spec.Space.Axes()
	sum := 0.0
	always, conditional := 0, []int(nil)
	for c, a := range axes {
		if a.Conditional {
			conditional = append(conditional, c)
		} else {
			always++
		}
	}
	if len(conditional) == 0 {
		return float64(always)
	}
	active := make([]bool, len(axes))
	recent := list[max(0, len(list)-256):]
	for _, r := range recent {
		if b.spec.Space.ActiveAt(r.x, active) != nil {
			continue
		}
		for _, c := range conditional {
			if active[c] {
				sum++
			}
		}
	}
	return float64(always) + sum/float64(len(recent))
}

// Sampling of dictionaries.
const (
	oversampling = 4.0  // q̄ of thesis Algorithm 5
	bestAlways   = 24   // best results that are always inducing points
	scored       = 8192 // results that get leverage scores; of more, a uniform sample
)

// chooseDictionary takes all different configurations while there is room, and
// then draws them by ridge leverage scores (thesis Algorithm 5): p = q̄·σ²/ξ²
// under the posterior on the dictionary before. Of very many results a uniform
// sample stands for all, each with the weight of those it stands for, as in a
// step of BLESS (thesis Algorithm 4). A quarter of the room is left to results
// to come. Reports get what room those leave that were drawn of what trials came
// to, which is what suggestions are about.
func (b *bkb) chooseDictionary(list []result, j int, s *surface, old *surface) error {
	k, err := b.kernelOf(s)
	if err != nil {
		return err
	}
	var all []member
	var samples []sample
	different := make(map[string]struct{})
	for i := range list {
		for n, o := range b.samplesOf(&list[i], j, s) {
			samples = append(samples, o)
			if len(different) <= b.options.Cap {
				different[pointKey(o.x)] = struct{}{}
			}
			all = append(all, member{i, n, len(all)})
		}
	}
	if len(different) <= b.options.Cap {
		s.setDictionary(list, distinct(samples, all, nil))
		p := rebuilt(k, s.Noise, s.Mean, b.options.Cap, false, b.inputs(list, j, s), samples)
		s.Dimension, s.Gain = dimension(p, samples), p.gain()
		return nil
	}
	// Probabilities under the old dictionary.
	base := *s
	if old != nil {
		base.Dictionary, base.Rows, base.Epochs = old.Dictionary, old.Rows, old.Epochs
	} else {
		rng := stream.New(stream.Derive(b.spec.Seed, "bkb uniform", uint64(len(list))))
		var drawn []member
		for range b.options.Cap {
			drawn = append(drawn, all[rng.IntN(len(all))])
		}
		base.setDictionary(list, drawn)
	}
	best := b.bestOf(list, all, j)
	few := b.uniform(all, len(list))
	weight := float64(len(all)) / float64(len(few))
	p := rebuilt(k, s.Noise, s.Mean, b.options.Cap, false, b.inputs(list, j, &base), weighed(samples, few, s.Noise, weight))
	scores := leverage(p, weighed(samples, few, s.Noise, 1))
	for _, v := range scores {
		s.Dimension += v * weight
	}
	s.Gain = p.gain()
	// Order sampling: key = uniform/p; all with a key below 1, smallest first.
	type drawn struct {
		i      int
		report int // 0 for what a trial came to, else 1
		key    float64
	}
	var in []drawn
	seed := stream.Derive(b.spec.Seed, "bkb dictionary", uint64(len(list)))
	for i, v := range scores {
		u := float64(stream.Mix(seed^list[few[i].of].key(few[i].row))>>11) / (1 << 53)
		if key := u / min(1, oversampling*v*weight); key < 1 {
			in = append(in, drawn{few[i].at, map[bool]int{true: 1}[b.isReport(samples[few[i].at])], key})
		}
	}
	slices.SortFunc(in, func(a, c drawn) int { return cmp.Or(a.report-c.report, cmp.Compare(a.key, c.key), a.i-c.i) })
	chosen := slices.Clone(best)
	room := b.options.Cap * 3 / 4
	for _, d := range in {
		chosen = append(chosen, all[d.i])
	}
	s.setDictionary(list, distinct(samples, chosen, func(n int) bool { return n < room }))
	s.Capped = len(s.Dictionary) >= room
	return nil
}

// isReport tells whether a sample is of a lower fidelity than an outcome.
func (b *bkb) isReport(o sample) bool {
	d := b.spec.Space.Dim()
	return len(o.x) > d && o.x[d] > 0
}

// member is a sample of a result: the row-th of its own, the at-th of all.
type member struct{ of, row, at int }

// key is what the row-th sample of a result has chance by.
func (r *result) key(row int) uint64 {
	k := stream.Mix(uint64(r.trial) + uint64(row)<<48)
	if r.epoch > 0 {
		k = stream.Derive(k, "late", uint64(r.epoch))
	}
	return k
}

// uniform returns the members, or scored of them, drawn at random, ascending.
func (b *bkb) uniform(members []member, results int) []member {
	if len(members) <= scored {
		return members
	}
	rng := stream.New(stream.Derive(b.spec.Seed, "bkb scored", uint64(results)))
	out := slices.Clone(members)
	for i := range scored {
		k := i + rng.IntN(len(out)-i)
		out[i], out[k] = out[k], out[i]
	}
	slices.SortFunc(out[:scored], func(a, c member) int { return a.at - c.at })
	return out[:scored]
}

// weighed are the samples of members, each as if observed so many times.
func weighed(samples []sample, members []member, noise, times float64) []sample {
	out := make([]sample, len(members))
	for i, m := range members {
		out[i] = samples[m.at]
		out[i].extra = (noise+out[i].extra)/times - noise
	}
	return out
}

// bestOf returns the members with the largest outcomes.
func (b *bkb) bestOf(list []result, all []member, j int) []member {
	if j >= b.feasibility() {
		return nil
	}
	value := make([]float64, 0, len(all)) // of those that follow
	var measured []member
	for _, m := range all {
		if r := &list[m.of]; r.y != nil && r.feasible && m.row == 0 {
			measured, value = append(measured, m), append(value, r.y[j].value)
		}
	}
	var best []int // into measured, by value and then in order
	for i, v := range value {
		if len(best) == bestAlways && v <= value[best[bestAlways-1]] {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, v, func(have int, v float64) int {
			if value[have] >= v {
				return -1
			}
			return 1
		})
		best = slices.Insert(best, at, i)[:min(len(best)+1, bestAlways)]
	}
	out := make([]member, len(best))
	for i, at := range best {
		out[i] = measured[at]
	}
	return out
}

// distinct returns the chosen members with different inputs, while more returns
// true for their number.
func distinct(samples []sample, chosen []member, more func(n int) bool) []member {
	seen := make(map[string]struct{}, len(chosen))
	var out []member
	for _, m := range chosen {
		key := pointKey(samples[m.at].x)
		if _, ok := seen[key]; ok {
			continue
		}
		if more != nil && !more(len(out)) {
			break
		}
		seen[key] = struct{}{}
		out = append(out, m)
	}
	return out
}

func (s *surface) setDictionary(list []result, members []member) {
	s.Dictionary, s.Rows, s.Epochs = nil, nil, nil
	lower := slices.ContainsFunc(members, func(m member) bool { return m.row > 0 })
	late := slices.ContainsFunc(members, func(m member) bool { return list[m.of].epoch > 0 })
	for _, m := range members {
		s.Dictionary = append(s.Dictionary, list[m.of].trial)
		if lower {
			s.Rows = append(s.Rows, m.row)
		}
		if late {
			s.Epochs = append(s.Epochs, list[m.of].epoch)
		}
	}
}

// inputs are those of the dictionary of surface s of quantity j.
func (b *bkb) inputs(list []result, j int, s *surface) [][]float64 {
	type source struct{ trial, epoch int }
	from := func(n int) source {
		if s.Epochs != nil {
			return source{s.Dictionary[n], s.Epochs[n]}
		}
		return source{s.Dictionary[n], 0}
	}
	at := make(map[source]*result, len(s.Dictionary))
	for n := range s.Dictionary {
		at[from(n)] = nil
	}
	for i := range list {
		key := source{list[i].trial, list[i].epoch}
		if _, ok := at[key]; ok {
			at[key] = &list[i]
		}
	}
	var out [][]float64
	for n := range s.Dictionary {
		r, row := at[from(n)], 0
		if s.Rows != nil {
			row = s.Rows[n]
		}
		if r == nil {
			continue
		}
		if samples := b.samplesOf(r, j, s); row < len(samples) {
			out = append(out, samples[row].x)
		}
	}
	return out
}

func (b *bkb) kernelOf(s *surface) (*covariance, error) {
	ordered, nominal := layout(b.spec.Space)
	k, err := newCovariance(ordered, nominal, s.Theta)
	if err != nil || s.Fidelity == nil {
		return k, err
	}
	return k.withFidelity(s.Fidelity.Length)
}

// leverage returns σ²ω of every sample, at most 1.
func leverage(p *posterior, samples []sample) []float64 {
	out := make([]float64, 0, len(samples))
	for from := 0; from < len(samples); from += chunk {
		part := samples[from:min(from+chunk, len(samples))]
		_, variance := p.predict(pointsOf(part, p.dim))
		for i, v := range variance {
			out = append(out, min(v*p.precision(part[i], 0), 1))
		}
	}
	return out
}

// dimension is the effective one: the sum of the leverage scores.
func dimension(p *posterior, samples []sample) float64 {
	sum := 0.0
	for _, v := range leverage(p, samples) {
		sum += v
	}
	return sum
}

func pointsOf(samples []sample, dim int) *kernel.Points[float64] {
	x := kernel.NewPoints[float64](len(samples), dim, nil)
	for i, o := range samples {
		copy(x.Row(i), o.x)
	}
	return x
}

// pointKey identifies an encoded configuration.
func pointKey(x []float64) string {
	key := make([]byte, 0, 8*len(x))
	for _, v := range x {
		w := math.Float64bits(v)
		key = append(key, byte(w), byte(w>>8), byte(w>>16), byte(w>>24), byte(w>>32), byte(w>>40), byte(w>>48), byte(w>>56))
	}
	return string(key)
}
