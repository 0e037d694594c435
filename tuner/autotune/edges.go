package autotune

import (
	"fmt"
	"math"
	"strings"

	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Is tells whether a study was made by a [Tuning].
func Is(s study.Spec) bool { return s.Attributes[attributeAlgorithm] != "" }

// Edges returns the ends of ranges at which a configuration of any study lies, as
// [space.Space.Edges] does; of one that a [Tuning] made, without those beyond which the
// learner cannot go: there are no more centres than rows.
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

// Wider returns, for a study that a [Tuning] made, a range that goes on beyond an end,
// as [ParseRange] reads it: a hundred times as far, or four times if it is of counts.
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
		low = max(2*math.Floor(low/8), l.Low, 1) // even: it may have to be
	case e.Upper && limited && 100*high >= l.High:
		high = (high + l.High) / 2
	case e.Upper:
		high = rounded(min(100*high, math.MaxFloat64))
	default:
		low = rounded(max(low/100, math.SmallestNonzeroFloat64))
	}
	return e.Parameter + "=" + Range{low, high}.String()
}

// LastStep tells whether the best step of a completed trial was its last one, so that
// more may be better, and of which hyper-parameter there should be more than there is.
func (t *Tuning) LastStep(trial study.Trial) (name string, value int, ok bool) {
	best, found := trial.Outcome.Metric(bestStep)
	last, _ := trial.Outcome.Metric(lastStep)
	if !found || t.steps == 0 || best.Mean() < last.Mean() {
		return "", 0, false
	}
	return t.counted, t.steps, true
}

// limitsOf are the ranges beyond which the learner cannot go, by name: those that the
// study remembers, or of one that an earlier program made, those that hold for any data.
func limitsOf(s study.Spec) map[string]Range {
	limits := map[string]Range{}
	text, ok := s.Attributes[attributeLimits]
	if !ok {
		dims, _ := theory.Space(s.Attributes[attributeAlgorithm], theory.Data{Rows: math.MaxInt32})
		text = strings.Join(limitTexts(dims), " ")
	}
	for _, text := range strings.Fields(text) {
		if name, r, err := ParseRange(text); err == nil {
			limits[name] = r
		}
	}
	return limits
}

// limitTexts are what dimensions can be at all, where there is a limit, as ParseRange
// reads it.
func limitTexts(dims []theory.Dimension) []string {
	var out []string
	for _, d := range dims {
		if d.Scale != theory.Choice && !d.Fidelity && d.Most < math.MaxInt32 || d.Step > 0 {
			out = append(out, fmt.Sprintf("%s=%s", d.Name, Range{d.Least, min(d.Most, math.MaxInt32)}))
		}
	}
	return out
}
