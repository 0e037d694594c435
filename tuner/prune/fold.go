package prune

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

// rule is the part of the work that differs between pruners. R is its note of one attempt,
// that is of one trial's reports under its last lease.
type rule[R any] interface {
	// begin returns the note of a trial without reports.
	begin(trial int) R
	// read takes in one more report.
	read(note *R, r study.Report)
	// withdraw undoes the effect of the attempt on other trials.
	withdraw(note *R)
	// finish ends an attempt that stays in the records, because t is completed or pruned.
	finish(note *R, t study.Trial)
	// judge decides about a running trial.
	judge(note *R) Verdict
}

// fold makes a rule a Pruner. It separates attempts and reads each report once.
type fold[R any] struct {
	rule    rule[R]
	running map[int]*attempt[R]
	over    []bool // by trial, true once it is completed or pruned, and finished
}

type attempt[R any] struct {
	epoch int
	read  int // of the trial's reports
	note  R
}

func newFold[R any](r rule[R]) Pruner {
	return &fold[R]{rule: r, running: make(map[int]*attempt[R])}
}

func (f *fold[R]) Update(t study.Trial) {
	if t.Number < len(f.over) && f.over[t.Number] {
		return
	}
	a := f.running[t.Number]
	counts := t.State == study.Running || t.State == study.Completed || t.State == study.Pruned
	if a != nil && (!counts || a.epoch != t.Epoch) {
		f.rule.withdraw(&a.note)
		delete(f.running, t.Number)
		a = nil
	}
	if !counts {
		return
	}
	if a == nil {
		a = &attempt[R]{epoch: t.Epoch, read: len(t.Reports) - len(t.CurrentReports()), note: f.rule.begin(t.Number)}
		f.running[t.Number] = a
	}
	for ; a.read < len(t.Reports); a.read++ {
		f.rule.read(&a.note, t.Reports[a.read])
	}
	if t.State != study.Running {
		f.rule.finish(&a.note, t)
		delete(f.running, t.Number)
		f.end(t.Number)
	}
}

func (f *fold[R]) end(trial int) {
	for len(f.over) <= trial {
		f.over = append(f.over, false)
	}
	f.over[trial] = true
}

func (f *fold[R]) Decide(trial int) Verdict {
	if a := f.running[trial]; a != nil {
		return f.rule.judge(&a.note)
	}
	return Verdict{}
}

// metric is the metric that a pruner reads.
type metric struct {
	name      string
	direction study.Direction
}

// readMetric reads the option "metric" (a name, by default the first objective). Unless
// undirected, it also reads "direction" (minimize or maximize). A metric that is not an
// objective needs a direction, and an objective may not have one.
func readMetric(o *study.Options, spec study.Spec, undirected bool) metric {
	m := metric{direction: study.Minimize}
	if len(spec.Objectives) > 0 {
		m.name = spec.Objectives[0].Name
	}
	m.name = o.Text("metric", m.name)
	if m.name == "" {
		o.Fail("pruner.options.metric", `""`, "must name a metric", "")
	}
	if undirected {
		return m
	}
	words := []string{"", study.Minimize.String(), study.Maximize.String()}
	asked := study.Direction(slices.Index(words, o.Choice("direction", words...)))
	i := slices.IndexFunc(spec.Objectives, func(x study.Objective) bool { return x.Name == m.name })
	switch {
	case i < 0 && asked < study.Minimize:
		o.Fail("pruner.options.metric", m.name, "is not an objective, so its direction is not known", "give the direction too, minimize or maximize")
	case i < 0:
		m.direction = asked
	case asked >= study.Minimize && asked != spec.Objectives[i].Direction:
		o.Fail("pruner.options.direction", asked.String(), "the objective "+m.name+" is to "+spec.Objectives[i].Direction.String(), "leave it out")
	default:
		m.direction = spec.Objectives[i].Direction
	}
	return m
}

// value returns the metric's value in a report, NaN included.
func (m metric) value(r study.Report) (x float64, ok bool) {
	for _, v := range r.Values {
		if v.Name == m.name {
			return v.Value, true
		}
	}
	return 0, false
}

// loss returns the value as a number to minimize. If it is NaN, ok is false.
func (m metric) loss(r study.Report) (x float64, ok bool) {
	x, ok = m.value(r)
	return m.flip(x), ok && !math.IsNaN(x)
}

// flip turns values into losses and back.
func (m metric) flip(x float64) float64 {
	if m.direction == study.Maximize {
		return -x
	}
	return x
}

// schedule determines at which steps trials are judged.
type schedule struct{ warmup, interval int64 }

// readSchedule reads the options "warmup_steps" and "interval_steps".
func readSchedule(o *study.Options) schedule {
	return schedule{o.Whole("warmup_steps", 0, 0, math.MaxInt64), o.Whole("interval_steps", 1, 1, math.MaxInt64)}
}

// due reports whether trials are judged at the step, which is warmup, warmup + interval, ….
func (s schedule) due(step int64) bool {
	return step >= s.warmup && (step-s.warmup)%s.interval == 0
}
