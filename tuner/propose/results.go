package propose

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// result is what one finished trial tells a model, or one late result of a trial:
// that is a measurement more of the same configuration.
type result struct {
	trial    int
	epoch    int            // of a late result the lease that it was told under, else 0
	end      study.Position // of the event that told it
	x        []float64      // encoded configuration
	feasible bool
	guided   bool      // a model suggested it, and this is the first that is heard of it
	cost     float64   // 0 if not known
	y        []measure // outcome, each objective; nil where there is none
	low      []rung    // reports, ascending steps
}

// measure is a measured objective, larger being better: ±Inf and the largest
// floats included, NaN never.
type measure struct {
	value  float64
	stdErr float64 // told; NaN if not
	count  int     // replicates
	within float64 // Σ (value − mean)² of the replicates
}

// results is the digest of a View that a model needs: what finished in the order
// in which it did, what is pending, and which configurations the study has.
type results struct {
	spec     study.Spec
	position study.Position // digested
	trials   int            // digested
	open     []int          // trials that may still come to something, ascending
	list     []result       // by end
	pending  []pending      // by trial
	seen     map[uint64]struct{}
	start    uint64 // number of the next point of the start design
	trust    trust
	options  *BKBOptions
	spent    float64 // told costs, as they count towards the study's MaxCost
	costly   int     // results told with a cost, whether or not it counts
	ordered  int     // coordinates

	constrained []int // results told with the metric of each constraint

	counting bool             // late results are among list
	late     int              // digested late results
	heardOf  map[int]struct{} // trials of which a late one tells, whether or not counting
}

// pending is a trial that runs or waits to run.
type pending struct {
	trial int
	x     []float64
	low   []rung // reports so far
}

func newResults(spec study.Spec, o *BKBOptions) *results {
	return &results{
		spec: spec, options: o, seen: make(map[uint64]struct{}), ordered: orderedAxes(spec.Space),
		constrained: make([]int, len(o.Constraints)), heardOf: make(map[int]struct{}),
	}
}

// end is an outcome that was told: a trial's, or a late one.
type end struct {
	at    study.Position
	trial int
	late  *study.Late // nil for the trial's
}

// follow digests what is new in v, with the late results or without.
func (r *results) follow(v View, counting bool) error {
	// A View may have been one model event ahead; see WithAnchor.
	anew := v.Trials() < r.trials || v.Position()+1 < r.position // not the history we know; see Proposer
	if anew || counting != r.counting && len(r.heardOf) > 0 {
		*r = *newResults(r.spec, r.options)
	}
	r.counting = counting
	var ended []end
	var open []int
	r.pending = r.pending[:0]
	look := func(t *study.Trial) error {
		done := t.State.Terminal()
		if done && !(t.State == study.Failed && t.Outcome.Reason == study.FailedExpired) {
			ended = append(ended, end{at: t.EndPosition(), trial: t.Number})
			return nil
		}
		open = append(open, t.Number)
		if done {
			return nil // a late tell may come
		}
		x, err := r.encode(t.Config)
		p := pending{trial: t.Number, x: x}
		if t.State == study.Running {
			p.low = rungsOf(t, r.spec.Objectives)
		}
		r.pending = append(r.pending, p)
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
		r.seen[fingerprint(t.Config)] = struct{}{}
		if t.Origin == study.OriginSuggested && t.Suggestion.Phase == PhaseStart {
			r.start = t.Suggestion.Seed + 1
		}
		if err := look(&t); err != nil {
			return err
		}
	}
	for l := range v.Late(r.late) {
		ended = append(ended, end{l.Position, l.Trial, &l})
	}
	slices.SortFunc(ended, func(a, b end) int { return cmp.Compare(a.at, b.at) })
	r.list = slices.Grow(r.list, len(ended))
	for _, e := range ended {
		t, _ := v.Trial(e.trial)
		if err := r.hear(t, e.late); err != nil {
			return err
		}
	}
	r.open, r.trials, r.position, r.spent, r.late = open, v.Trials(), v.Position(), v.Cost(), v.LateResults()
	return nil
}

// hear takes in a trial's outcome, or a late one if that is not nil.
func (r *results) hear(t study.Trial, late *study.Late) error {
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
	res.guided = res.guided && first && !(before && r.counting)
	if late != nil {
		r.heardOf[t.Number] = struct{}{}
		if !r.counting {
			return nil
		}
		res.end, res.epoch = late.Position, late.Epoch
	}
	r.list = append(r.list, res)
	if t.Outcome.Cost > 0 {
		r.costly++
	}
	for i, c := range r.options.Constraints {
		if _, told := t.Outcome.Metric(c.metric); told {
			r.constrained[i]++
		}
	}
	r.trust.tell(&res, r.ordered)
	return nil
}

// former is a trial as its former holder tells of it: with the outcome of a late
// result and what was reported under its lease. How long that ran is not known.
func former(t study.Trial, late *study.Late) study.Trial {
	t.State, t.Outcome, t.Epoch = late.Outcome.State, late.Outcome, late.Epoch
	t.Started, t.Ended = time.Time{}, time.Time{}
	return t
}

// leads tells whether a late result came before the trial's own outcome, or that
// tells nothing.
func (r *results) leads(t *study.Trial, late *study.Late) (bool, error) {
	if end := t.EndPosition(); end == 0 || end > late.Position {
		return true, nil
	}
	_, tells, err := r.read(t)
	return !tells, err
}

func (r *results) encode(c space.Config) ([]float64, error) {
	x := make([]float64, r.spec.Space.Dim())
	return x, r.spec.Space.Encode(c, x)
}

// upTo is the number of results that are in the log up to a position.
func (r *results) upTo(p study.Position) int {
	n, _ := slices.BinarySearchFunc(r.list, p, func(a result, p study.Position) int {
		if a.end <= p {
			return -1
		}
		return 1
	})
	return n
}

// blames tells whether the configuration is to blame for a failure.
func (r *results) blames(reason study.FailReason) bool {
	return reason == study.FailedNaN || reason == study.FailedCrash && !r.options.IgnoreFailures
}

// read tells what a finished trial says. Expired and cancelled trials say nothing;
// infeasible ones, those that crashed or came to NaN, and completed ones that do not
// keep to the constraints that they are not feasible. A pruned one has its reports; without any, the objectives it was told with, which
// are no more than the last report where there is one.
func (r *results) read(t *study.Trial) (out result, tells bool, err error) {
	out = result{trial: t.Number, end: t.EndPosition(), feasible: true, cost: r.options.Cost.of(t)}
	out.guided = t.Origin == study.OriginSuggested && (t.Suggestion.Phase == PhaseModel || t.Suggestion.Phase == PhaseExploit)
	switch {
	case t.State == study.Infeasible, t.State == study.Failed && r.blames(t.Outcome.Reason):
		out.feasible = false
	case t.State == study.Completed:
		out.y, out.low = r.measures(t.Outcome), rungsOf(t, r.spec.Objectives)
		out.feasible = kept(r.options.Constraints, t.Outcome)
	case t.State == study.Pruned:
		if out.low = rungsOf(t, r.spec.Objectives); out.low == nil {
			out.y = r.measures(t.Outcome)
		}
		if out.low == nil && out.y == nil {
			return out, false, nil
		}
	default:
		return out, false, nil
	}
	out.x, err = r.encode(t.Config)
	return out, true, err
}

// measures collects all objectives; nil if one is missing.
func (r *results) measures(outcome study.Outcome) []measure {
	var out []measure
	for _, o := range r.spec.Objectives {
		m, ok := measured(outcome, o.Name)
		if !ok || math.IsNaN(m.value) {
			return nil
		}
		if o.Direction == study.Minimize {
			m.value = -m.value
		}
		out = append(out, m)
	}
	return out
}

func measured(o study.Outcome, name string) (measure, bool) {
	m, ok := o.Metric(name)
	if !ok {
		return measure{}, false
	}
	out := measure{value: m.Mean(), stdErr: math.NaN(), count: len(m.Values)}
	if m.HasStdErr {
		out.stdErr = m.StdErr
	}
	if out.count > 1 {
		for _, v := range m.Values {
			out.within += (v - out.value) * (v - out.value)
		}
	}
	return out, true
}
