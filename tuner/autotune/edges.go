package autotune

import (
	"math"
	"strings"

	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Is reports whether a study was made by a [Tuning].
func Is(s study.Spec) bool { return s.Attributes[attributeAlgorithm] != "" }

// Edges returns the ends of ranges at which a configuration of any study lies, as
// [space.Space.Edges] does. For a study that a [Tuning] made, it leaves out ends that the
// learner cannot exceed, such as the number of rows for centres, and a λ below which
// rounding errors decide.
func Edges(s study.Spec, c space.Config) []space.Edge {
	var out []space.Edge
	limits := limitsOf(s)
	for _, e := range s.Space.Edges(c) {
		low, _ := e.Low.Number()
		high, _ := e.High.Number()
		l, limited := limits[e.Parameter]
		if !limited || e.Upper && high < l.High || !e.Upper && low > l.Low {
			out = append(out, e)
		}
	}
	return out
}

// Wider returns, for a study that a [Tuning] made, a range that extends beyond an end, in
// the format of [ParseRange]. It extends a hundredfold, or fourfold for counts.
func Wider(s study.Spec, e space.Edge) string {
	const most = math.MaxInt32 // of a count
	low, _ := e.Low.Number()
	high, _ := e.High.Number()
	l, limited := limitsOf(s)[e.Parameter]
	_, count := e.Low.AsInt()
	switch {
	case count && e.Upper && limited:
		high = min(4*high, l.High)
	case count && e.Upper:
		high = min(4*high, most)
	case count:
		low = max(2*math.Floor(low/8), l.Low, 1) // even, because the parameter may require it
	case e.Upper && limited && 100*high >= l.High:
		high = (high + l.High) / 2
	case e.Upper:
		high = rounded(min(100*high, math.MaxFloat64))
	default: // The lower end may already be below the limit.
		low = min(low, rounded(max(low/100, l.Low, math.SmallestNonzeroFloat64)))
	}
	return e.Parameter + "=" + Range{low, high}.String()
}

// LastStep reports whether the best step of a completed trial was its last one. More steps
// may then be better. The name and value are those of the hyper-parameter to increase.
func (t *Tuning) LastStep(trial study.Trial) (name string, value int, ok bool) {
	best, found := trial.Outcome.Metric(bestStep)
	last, _ := trial.Outcome.Metric(lastStep)
	if !found || t.steps == 0 || best.Mean() < last.Mean() {
		return "", 0, false
	}
	return t.counted, t.steps, true
}

// limitsOf returns the ranges beyond which there is nothing to search, by name. They are
// stored in the study.
func limitsOf(s study.Spec) map[string]Range {
	limits := map[string]Range{}
	for _, text := range strings.Fields(s.Attributes[attributeLimits]) {
		if name, r, err := ParseRange(text); err == nil {
			limits[name] = r
		}
	}
	return limits
}

// limited reports whether a dimension has limits of the learner.
func limited(d theory.Dimension) bool {
	return d.Scale != theory.Choice && !d.Fidelity && d.Most < math.MaxInt32 || d.Step > 0 || d.Floor > 0
}
