package autotune

import (
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/space"
)

// maxSteps is the most values of an ordinal that stands for theory's range of counts,
// leastRatio the least of neighbours beyond it.
const (
	maxSteps   = 33
	leastRatio = 1.1
)

// build makes the space and the configurations to begin with.
func (t *Tuning) build(dims []theory.Dimension) error {
	var parameters []space.Parameter
	start := map[string]space.Value{}
	for _, d := range dims {
		if _, fixed := t.options.Fixed[d.Name]; fixed {
			continue
		}
		p, v := parameterOf(d, t.searched(d))
		t.limits = append(t.limits, limitTexts([]theory.Dimension{d})...)
		if d.Fidelity {
			t.counted, t.steps = d.Name, int(d.High)
		}
		parameters, start[d.Name] = append(parameters, p), v
	}
	for _, p := range t.algorithm.Parameters {
		text, fixed := t.options.Fixed[p.Name]
		if !fixed {
			continue
		}
		v := fixedValue(p, text)
		parameters, start[p.Name] = append(parameters, space.NewConstant(p.Name, v)), v
	}
	if t.steps == 0 {
		t.counted, t.steps = t.iterations()
	}
	var err error
	if t.space, err = space.New(parameters...); err != nil {
		return err
	}
	t.starts = []space.Config{configOf(start)}
	i := slices.IndexFunc(parameters, func(p space.Parameter) bool { return p.Name == "length-scale" && p.Type == space.TypeFloat })
	if i < 0 {
		return nil
	}
	low, _ := parameters[i].Low.AsFloat()
	x, _ := start["length-scale"].AsFloat()
	if half := max(rounded(x/2), low); half < x {
		start["length-scale"] = space.Float(half)
		t.starts = append(t.starts, configOf(start))
	}
	return nil
}

// iterations is the fixed or default number of steps of a learner that has one, and
// what it is called.
func (t *Tuning) iterations() (name string, n int) {
	all := t.algorithm.Resolve(t.options.Fixed)
	for _, name := range []string{"passes", "iterations"} {
		if n, err := strconv.Atoi(all[name]); err == nil {
			return name, n
		}
	}
	return "", 0
}

// parameterOf returns a dimension as theory has it, to be searched in d, as a parameter
// with the value to start from.
func parameterOf(theirs, d theory.Dimension) (space.Parameter, space.Value) {
	switch {
	case d.Scale == theory.Choice:
		values := make([]space.Value, len(d.Choices))
		for i, c := range d.Choices {
			values[i] = space.String(c)
		}
		if d.Ordered {
			return space.NewOrdinal(d.Name, values...), values[0]
		}
		return space.NewCategorical(d.Name, values...), values[0]
	case d.Fidelity:
		v := space.Int(int64(d.High))
		return space.NewConstant(d.Name, v), v
	case d.Step > 0:
		return stepped(theirs, d)
	case d.Integer:
		return space.NewInt(d.Name, int64(d.Low), int64(d.High)).WithScale(space.Log), space.Int(int64(d.Start))
	}
	return space.NewFloat(d.Name, d.Low, d.High).WithScale(space.Log), space.Float(d.Start)
}

// stepped returns counts that are multiples of a step as an ordinal, with the value to
// start from: the ends of d, and between them theory's geometric progression, which goes
// on beyond theory's ends. So what is in a range is in every wider one.
func stepped(theirs, d theory.Dimension) (space.Parameter, space.Value) {
	counts := []float64{d.Low, d.Start, d.High}
	add := func(x float64) {
		if x = d.Step * math.Round(x/d.Step); d.Low < x && x < d.High {
			counts = append(counts, x)
		}
	}
	ratio := math.Pow(theirs.High/theirs.Low, 1/float64(maxSteps-3))
	for i := range maxSteps - 2 {
		add(theirs.Low * math.Pow(theirs.High/theirs.Low, float64(i)/float64(maxSteps-3)))
	}
	ratio = max(ratio, leastRatio)
	for x := theirs.Low / ratio; x > d.Low; x /= ratio {
		add(x)
	}
	for x := theirs.High * ratio; x < d.High; x *= ratio {
		add(x)
	}
	slices.Sort(counts)
	var values []space.Value
	for _, x := range slices.Compact(counts) {
		values = append(values, space.Int(int64(x)))
	}
	if len(values) == 1 {
		return space.NewConstant(d.Name, values[0]), values[0]
	}
	return space.NewOrdinal(d.Name, values...), space.Int(int64(d.Start))
}

// fixedValue is the value of a hyper-parameter that is not searched; text is
// checked.
func fixedValue(p training.Parameter, text string) space.Value {
	switch p.Kind {
	case training.Count:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return space.Int(n)
		}
	case training.Real:
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return space.Float(x)
		}
	}
	return space.String(text)
}

// rounded has four significant digits: ranges are for people too.
func rounded(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'e', 3, 64), 64)
	if err != nil || y == 0 {
		return x
	}
	return y
}

func configOf(values map[string]space.Value) space.Config {
	var list []space.Assignment
	for name, v := range values {
		list = append(list, space.Assignment{Name: name, Value: v})
	}
	return space.NewConfig(list...)
}
