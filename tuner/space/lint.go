package space

import (
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/internal/stream"
)

// Warning is advice about a space that is legal but probably not as intended.
type Warning struct {
	Line      int    // of the file, 0 if not read from one
	Parameter string // name
	Message   string // the finding
	Remedy    string // the remedy
}

// String formats w as `line 3: parameter "batch": message; remedy`.
func (w Warning) String() string {
	e := Error{Line: w.Line, Parameter: w.Parameter, Rule: w.Message, Remedy: w.Remedy}
	return e.Error()
}

// Lint looks for descriptions that are legal and probably not as intended, because they
// cost trials. [Parse] returns its findings.
func Lint(s *Space) []Warning {
	var out []Warning
	for k := range s.members {
		m := &s.members[k]
		m.lint(func(message, remedy string) {
			out = append(out, Warning{Line: m.line, Parameter: m.Name, Message: message, Remedy: remedy})
		})
		if name, ok := s.contradiction(k, make(map[int]map[Value]bool), make(map[int]bool)); ok {
			out = append(out, Warning{
				Line: m.line, Parameter: m.Name, Message: "the parameter is never active: its conditions and those of its parents require different values of " + quote(name),
				Remedy: "remove one of the conditions",
			})
		}
	}
	return append(out, lintConstraints(s)...)
}

// Of the constraints, sampledConfigs configurations are sampled. A share below scarce gets
// advice. Whether a constraint adds anything is judged by fewestJudged or more.
const (
	sampledConfigs = 4096
	scarce         = 0.01
	fewestJudged   = 200
)

// Share returns the share of uniform configurations that keep the constraints, of some
// thousand that are sampled. Where an equation determines a parameter, it is the share of
// the others for which there is a value.
func (s *Space) Share() float64 {
	if len(s.constraints) == 0 {
		return 1
	}
	kept, w := 0, s.workspace()
	s.sample(func(u []float64) {
		if s.inside(u, w) {
			kept++
		}
	})
	return float64(kept) / sampledConfigs
}

// ShareText is Share as text, such as "about 12 %".
func (s *Space) ShareText() string {
	switch share := s.Share(); {
	case share == 0:
		return fmt.Sprintf("less than %.1g %%", 100.0/sampledConfigs)
	case share > 0.995:
		return "nearly all"
	default:
		return fmt.Sprintf("about %.2g %%", 100*share)
	}
}

// sample calls visit with uniform points, the same in every call.
func (s *Space) sample(visit func(u []float64)) {
	rng := stream.New(stream.Derive(0, "space sample", uint64(len(s.axes))))
	u := make([]float64, len(s.axes))
	for range sampledConfigs {
		for j := range u {
			u[j] = rng.Float64()
		}
		visit(u)
	}
}

// lintConstraints finds constraints that leave little of the space, and those that add
// nothing to the others.
func lintConstraints(s *Space) []Warning {
	var out []Warning
	if len(s.constraints) == 0 {
		return nil
	}
	first := s.constraints[0].line
	if s.Share() < scarce {
		out = append(out, Warning{
			Line: first, Message: fmt.Sprintf("the constraints keep %s of the configurations", s.ShareText()),
			Remedy: "narrow the ranges to the part that can keep them",
		})
	}
	for i, c := range s.constraints {
		others := *s.Free()
		others.constraints = slices.Delete(slices.Clone(s.constraints), i, i+1)
		others.solve()
		judged, broken := 0, 0
		w := s.workspace()
		s.sample(func(u []float64) {
			if !others.inside(u, w) {
				return
			}
			numbers(w.values, w.x)
			if judged++; c.applies(w.values) && !c.clause.holds(w.values, w.x) {
				broken++
			}
		})
		if judged >= fewestJudged && broken == 0 {
			message := fmt.Sprintf("the constraint %s is kept by all of %d sampled configurations", quote(c.text), judged)
			if len(s.constraints) > 1 {
				message += " that keep the others"
			}
			out = append(out, Warning{Line: c.line, Message: message, Remedy: "remove it, or check its direction"})
		}
	}
	return out
}

func (m *member) isRange() bool { return m.Type == TypeFloat || m.Type == TypeInt }

// maxReverseRatio is the largest ratio high/low of a reverse-log range for which float64
// separates the values near its upper end.
const maxReverseRatio = 1e12

// lint checks a parameter by itself.
func (m *member) lint(add func(message, remedy string)) {
	if m.axis == nil {
		return
	}
	single := m.axis.levels() == 1
	if v := m.axis.decode(Neutral); single {
		add("there is one value, "+show(v)+": nothing to tune", "use type: constant, value: "+show(v)+", or widen it")
	}
	if m.Type == TypeCategorical {
		m.lintRising(add)
	}
	if !m.isRange() {
		return
	}
	low, _ := m.Low.Number()
	high, _ := m.High.Number()
	positive, ratio := low > 0 && low < high, high/low
	if positive && m.Scale != Linear && ratio < 2 {
		add(fmt.Sprintf("a %s range of a factor %.3g, less than 2: the scale makes no difference", m.Scale, ratio), "widen it, or use scale: linear")
	}
	if positive && m.Type == TypeFloat && m.Scale == Linear && m.Step.kind == KindNone && ratio >= 1000 {
		add(fmt.Sprintf("a linear range over a factor %.3g: 90 %% of it is the last decade", ratio), "use scale: log")
	}
	if positive && m.Type == TypeFloat && m.Scale == ReverseLog && ratio > maxReverseRatio {
		add(fmt.Sprintf("a reverse-log range over a factor %.3g: float64 cannot tell the values near %s apart", ratio, show(m.High)), "raise low, or tune the distance from the upper end on a log scale")
	}
	if top := m.axis.decode(1); m.Step.kind != KindNone && !single && top != m.High {
		add("the step does not divide the range: the highest value is "+show(top)+", not "+show(m.High), "use high: "+show(top)+", or another step")
	}
	if a, ok := m.axis.(*continuousAxis); ok && !(a.first <= a.last && (a.last-a.first)/ulp(max(math.Abs(a.low), math.Abs(a.high))) > 1e4) {
		add("the range is so narrow that float64 has few values in it", "tune the difference from "+show(m.Low)+" instead")
	}
}

// lintRising finds three or more numbers, or texts that spell them, that only rise or only fall.
func (m *member) lintRising(add func(message, remedy string)) {
	typ, numbers := "int", make([]float64, 0, len(m.Values))
	for _, v := range m.Values {
		if text, isText := v.AsString(); isText {
			v, _, _ = parseNumber(text)
		}
		x, isNumber := v.Number()
		if !isNumber {
			return
		}
		if v.kind != KindInt {
			typ = "float"
		}
		numbers = append(numbers, x)
	}
	if len(numbers) > 1 && numbers[0] > numbers[1] {
		slices.Reverse(numbers)
	}
	if len(numbers) < 3 || !slices.IsSorted(numbers) || len(slices.Compact(slices.Clone(numbers))) < len(numbers) {
		return
	}
	first, last := numbers[0], numbers[len(numbers)-1]
	message := fmt.Sprintf("a categorical of rising numbers, %s … %s: the model cannot know which are near each other", showFloat(first), showFloat(last))
	scale := ""
	if first > 0 && last/first >= 8 && !equallySpaced(numbers) {
		message, scale = message+"; it should be a log range", ", scale: log"
	}
	add(message, fmt.Sprintf("use {type: %s, low: %s, high: %s%s}, or type: ordinal", typ, showFloat(first), showFloat(last), scale))
}

func equallySpaced(x []float64) bool {
	gap := (x[len(x)-1] - x[0]) / float64(len(x)-1)
	for i := 1; i < len(x); i++ {
		if math.Abs(x[i]-x[i-1]-gap) > 1e-9*gap {
			return false
		}
	}
	return true
}

// contradiction intersects the conditions above member k and returns the ancestor for which
// no value is left. All conditions must be met and parents choose freely, so there is one
// if and only if k is never active.
func (s *Space) contradiction(k int, allowed map[int]map[Value]bool, done map[int]bool) (name string, ok bool) {
	if done[k] {
		return "", false
	}
	done[k] = true
	for _, c := range s.members[k].conditions {
		left := make(map[Value]bool, len(c.values))
		for _, v := range c.values {
			if before, seen := allowed[c.parent]; !seen || before[v] {
				left[v] = true
			}
		}
		allowed[c.parent] = left
		if len(left) == 0 {
			return s.members[c.parent].Name, true
		}
		if name, ok := s.contradiction(c.parent, allowed, done); ok {
			return name, true
		}
	}
	return "", false
}
