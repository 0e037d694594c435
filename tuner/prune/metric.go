package prune

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/tuner/study"
)

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
