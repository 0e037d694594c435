package model

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Result is the information of one finished trial, or of one late result of a trial. A late
// result is one more measurement of the same configuration.
type Result struct {
	Trial    int
	Epoch    int            // of a late result the epoch of its lease, else 0
	End      study.Position // of the event that told it
	X        []float64      // encoded configuration
	Feasible bool           // keeps the constraints
	Failed   bool           // infeasible by itself, crashed, NaN, or a metric with a limit is missing
	Unfit    bool           // told as infeasible
	Pruned   bool           // stopped early
	Guided   bool           // A model suggested it, and this is its first result.
	Evolved  bool           // An evolution strategy suggested it, and this is its first result.
	Seen     study.Position // of the suggestion, see study.Suggestion
	Cost     float64        // 0 if not known
	Y        []Measure      // outcome, each objective, nil if there is none
	Low      []Rung         // reports, ascending steps
	Limited  []Measure      // of a completed trial, the metric of each constraint, with Count 0 if missing
}

// Measure is a measured objective, where larger is better. It may be ±Inf and the largest
// floats, but never NaN.
type Measure struct {
	Value  float64
	StdErr float64 // told, NaN if not
	Count  int     // replicates
	Within float64 // Σ (value − mean)² of the replicates
}

// Pending is a trial that runs or waits to run.
type Pending struct {
	Trial int
	X     []float64
	Low   []Rung // reports so far
}

// Results is the digest of a View that a model needs. It has the results in the order in
// which they came, the pending trials, and the configurations of the study.
type Results struct {
	List    []Result  // by End
	Pending []Pending // by Trial
	Spent   float64   // told costs, as they count towards the study's MaxCost
	Costly  int       // results told with a cost, whether or not it counts
	Repeats Repeats   // outcomes of one configuration
	Again   int       // suggestions that repeat the best trial, however they ended
	// Begun counts how often the digest began again. A fold of List begins again with it.
	Begun int

	spec     study.Spec
	options  *Options
	position study.Position // digested
	trials   int            // digested
	open     []int          // trials that may still get a result, ascending
	seen     map[uint64]struct{}
	negative map[string]bool // metrics that had a negative value

	constrained []int // results told with the metric of each constraint

	late    int              // digested late results
	heardOf map[int]struct{} // trials with a late result
}

func newResults(spec study.Spec, o *Options) *Results {
	return &Results{
		spec: spec, options: o, seen: make(map[uint64]struct{}), negative: make(map[string]bool),
		constrained: make([]int, len(o.Constraints)), heardOf: make(map[int]struct{}),
	}
}

// Has reports whether a trial of the study has the configuration already.
func (r *Results) Has(c space.Config) bool {
	_, has := r.seen[Fingerprint(c)]
	return has
}

// end is an outcome that was told, by a trial's holder or late.
type end struct {
	at    study.Position
	trial int
	late  *study.Late // nil for the trial's outcome
}

// follow digests the news in v.
func (r *Results) follow(v View) error {
	// A View may have been one model event ahead. See WithAnchor.
	if v.Trials() < r.trials || v.Position()+1 < r.position { // a different history, see Proposer
		begun := r.Begun + 1
		*r = *newResults(r.spec, r.options)
		r.Begun = begun
	}
	var ended []end
	var open []int
	r.Pending = r.Pending[:0]
	look := func(t *study.Trial) error {
		done := t.State.Terminal()
		if done && !(t.State == study.Failed && t.Outcome.Reason == study.FailedExpired) {
			ended = append(ended, end{at: t.EndPosition(), trial: t.Number})
			return nil
		}
		open = append(open, t.Number)
		if done {
			return nil // a late result may come
		}
		x, err := r.Encode(t.Config)
		p := Pending{Trial: t.Number, X: x}
		if t.State == study.Running {
			p.Low = rungsOf(t, r.spec.Objectives)
		}
		r.Pending = append(r.Pending, p)
		return err
	}
	for _, n := range r.open {
		if t, ok := v.Trial(n); ok {
			if err := look(&t); err != nil {
				return err
			}
		}
	}
	for t := range v.All(r.trials) {
		r.seen[Fingerprint(t.Config)] = struct{}{}
		if t.Origin == study.OriginSuggested && t.Suggestion.Phase == study.PhaseRepeat {
			r.Again++
		}
		if err := look(&t); err != nil {
			return err
		}
	}
	for l := range v.Late(r.late) {
		ended = append(ended, end{l.Position, l.Trial, &l})
	}
	slices.SortFunc(ended, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	r.List = slices.Grow(r.List, len(ended))
	for _, e := range ended {
		t, _ := v.Trial(e.trial)
		if err := r.hear(t, e.late); err != nil {
			return err
		}
	}
	r.open, r.trials, r.position, r.Spent, r.late = open, v.Trials(), v.Position(), v.Cost(), v.LateResults()
	return nil
}

// hear adds a trial's outcome, or a late one if late is not nil.
func (r *Results) hear(t study.Trial, late *study.Late) error {
	first := true
	if late != nil {
		var err error
		if first, err = r.leads(&t, late); err != nil {
			return err
		}
		t = former(t, late)
	}
	res, tells, err := r.read(&t)
	if err != nil || !tells {
		return err
	}
	_, before := r.heardOf[t.Number]
	once := first && !before
	res.Guided, res.Evolved = res.Guided && once, res.Evolved && once
	if late != nil {
		r.heardOf[t.Number] = struct{}{}
		res.End, res.Epoch = late.Position, late.Epoch
	}
	r.List = append(r.List, res)
	if res.Y != nil && !res.Pruned {
		r.Repeats.add(Fingerprint(t.Config), res.Y[0])
	}
	for _, m := range t.Outcome.Metrics {
		if slices.ContainsFunc(m.Values, func(v float64) bool { return v < 0 }) {
			r.negative[m.Name] = true
		}
	}
	if t.Outcome.Cost > 0 {
		r.Costly++
	}
	for i, c := range r.options.Constraints {
		if _, told := t.Outcome.Metric(c.metric); told {
			r.constrained[i]++
		}
	}
	return nil
}

// former returns a trial as its former holder told it, with the outcome of a late result
// and the reports under its lease. Its running time is not known.
func former(t study.Trial, late *study.Late) study.Trial {
	t.State, t.Outcome, t.Epoch = late.Outcome.State, late.Outcome, late.Epoch
	t.Started, t.Ended = time.Time{}, time.Time{}
	return t
}

// leads reports whether a late result came before the trial's own outcome, or that outcome
// teaches nothing.
func (r *Results) leads(t *study.Trial, late *study.Late) (bool, error) {
	if end := t.EndPosition(); end == 0 || end > late.Position {
		return true, nil
	}
	_, tells, err := r.read(t)
	return !tells, err
}

// Encode returns the point of the cube that represents a configuration.
func (r *Results) Encode(c space.Config) ([]float64, error) {
	x := make([]float64, r.spec.Space.Dim())
	return x, r.spec.Space.Encode(c, x)
}

// upTo returns the number of results that are in the log up to a position.
func (r *Results) upTo(p study.Position) int {
	n, _ := slices.BinarySearchFunc(r.List, p, func(a Result, p study.Position) int {
		if a.End <= p {
			return -1
		}
		return 1
	})
	return n
}

// read returns the result of a finished trial, and whether it teaches anything. Expired and
// cancelled trials teach nothing. Infeasible trials, trials that crashed or returned NaN,
// and completed trials that break the constraints count as not feasible. A pruned trial
// counts with its reports. Without reports it counts with its told objectives, because
// these are otherwise no more than the last report.
func (r *Results) read(t *study.Trial) (out Result, tells bool, err error) {
	out = Result{Trial: t.Number, End: t.EndPosition(), Feasible: true, Cost: r.options.Cost.of(t)}
	out.Guided = t.Origin == study.OriginSuggested && slices.Contains([]string{study.PhaseModel, study.PhaseExploit, study.PhaseExplore}, t.Suggestion.Phase)
	out.Evolved = t.Origin == study.OriginSuggested && t.Suggestion.Phase == study.PhaseEvolve
	out.Seen = t.Suggestion.Seen
	switch {
	case t.State == study.Infeasible, t.State == study.Failed &&
		(t.Outcome.Reason == study.FailedNaN || t.Outcome.Reason == study.FailedCrash && !r.options.IgnoreFailures):
		out.Feasible, out.Failed, out.Unfit = false, true, t.State == study.Infeasible
	case t.State == study.Completed:
		out.Y, out.Low = measures(r.spec.Objectives, t.Outcome), rungsOf(t, r.spec.Objectives)
		out.Feasible = Violation(r.options.Constraints, t.Outcome) == 0
		for _, c := range r.options.Constraints {
			m, ok := measured(t.Outcome, c.metric)
			if !ok || math.IsNaN(m.Value) {
				m, out.Failed = Measure{}, true
			}
			out.Limited = append(out.Limited, c.measured(m))
		}
	case t.State == study.Pruned:
		out.Pruned = true
		if out.Low = rungsOf(t, r.spec.Objectives); out.Low == nil {
			out.Y = measures(r.spec.Objectives, t.Outcome)
		}
		if out.Low == nil && out.Y == nil {
			return out, false, nil
		}
	default:
		return out, false, nil
	}
	out.X, err = r.Encode(t.Config)
	return out, true, err
}

// measures collects all objectives. It returns nil if one is missing.
func measures(objectives []study.Objective, outcome study.Outcome) []Measure {
	var out []Measure
	for _, o := range objectives {
		m, ok := measured(outcome, o.Name)
		if !ok || math.IsNaN(m.Value) {
			return nil
		}
		if o.Direction == study.Minimize {
			m.Value = -m.Value
		}
		out = append(out, m)
	}
	return out
}

func measured(o study.Outcome, name string) (Measure, bool) {
	m, ok := o.Metric(name)
	if !ok {
		return Measure{}, false
	}
	out := Measure{Value: m.Mean(), StdErr: math.NaN(), Count: len(m.Values)}
	if m.HasStdErr {
		out.StdErr = m.StdErr
	}
	if out.Count > 1 {
		for _, v := range m.Values {
			out.Within += (v - out.Value) * (v - out.Value)
		}
	}
	return out, true
}

// CostSource is the source of a trial's cost.
type CostSource uint8

const (
	CostIgnored CostSource = iota
	CostTold               // study.Outcome.Cost
	CostSeconds            // from the last start to the end
)

// of returns the cost of a trial, or 0 if it is not known. The costs of pruned and crashed
// trials are not used, because bad configurations would look cheap.
func (c CostSource) of(t *study.Trial) float64 {
	switch {
	case c == CostIgnored, t.State == study.Pruned, t.State == study.Failed && t.Outcome.Reason == study.FailedCrash:
		return 0
	case c == CostTold:
		return t.Outcome.Cost
	case t.Epoch == 0: // it ran elsewhere
		return 0
	default:
		return max(t.Ended.Sub(t.Started).Seconds(), 0)
	}
}

// Fingerprint is a hash of c, the same on every machine. Two configurations with the same
// fingerprint count as the same. Among 10⁵ there are two such with probability 3e-10.
func Fingerprint(c space.Config) uint64 {
	h := fnv.New64a()
	var word [9]byte
	for name, v := range c.All() {
		h.Write(binary.AppendUvarint(word[:0], uint64(len(name))))
		h.Write([]byte(name))
		word[0] = byte(v.Kind())
		if text, ok := v.AsString(); ok {
			binary.LittleEndian.PutUint64(word[1:], uint64(len(text)))
			h.Write(word[:])
			h.Write([]byte(text))
			continue
		}
		binary.LittleEndian.PutUint64(word[1:], wordOf(v))
		h.Write(word[:])
	}
	return h.Sum64()
}

// wordOf returns the bits of a value that is not a string.
func wordOf(v space.Value) uint64 {
	if x, ok := v.AsFloat(); ok {
		return math.Float64bits(x)
	}
	if n, ok := v.AsInt(); ok {
		return uint64(n)
	}
	if b, _ := v.AsBool(); b {
		return 1
	}
	return 0
}
