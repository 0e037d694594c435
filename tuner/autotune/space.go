package autotune

import (
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/tuner/space"
)

// maxSteps is the most values of an ordinal that stands for a range of counts.
const maxSteps = 33

// build makes the space and the configurations to begin with.
func (t *Tuning) build(dims []theory.Dimension) error {
	var parameters []space.Parameter
	start := map[string]space.Value{}
	for _, d := range dims {
		if _, fixed := t.options.Fixed[d.Name]; fixed {
			continue
		}
		p, v := parameterOf(d)
		if d.Fidelity {
			t.steps = int(d.High)
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
		t.steps = t.iterations()
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
	start["length-scale"] = space.Float(max(rounded(x/2), low))
	t.starts = append(t.starts, configOf(start))
	return nil
}

// iterations is the fixed or default number of steps of a learner that has one.
func (t *Tuning) iterations() int {
	all := t.algorithm.Resolve(t.options.Fixed)
	for _, name := range []string{"passes", "iterations"} {
		if n, err := strconv.Atoi(all[name]); err == nil {
			return n
		}
	}
	return 0
}

// parameterOf returns a dimension as a parameter with the value to start from.
func parameterOf(d theory.Dimension) (space.Parameter, space.Value) {
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
		return stepped(d)
	case d.Integer:
		return space.NewInt(d.Name, int64(d.Low), int64(d.High)).WithScale(space.Log), space.Int(int64(d.Start))
	}
	low, high := rounded(d.Low), rounded(d.High)
	v := space.Float(min(max(rounded(d.Start), low), high))
	return space.NewFloat(d.Name, low, high).WithScale(space.Log), v
}

// stepped returns counts that are multiples of a step as an ordinal: a geometric
// progression from low to high, and the value to start from.
func stepped(d theory.Dimension) (space.Parameter, space.Value) {
	counts := []float64{d.Low, d.Start, d.High}
	for i := range maxSteps - 2 {
		x := d.Low * math.Pow(d.High/d.Low, float64(i)/float64(maxSteps-3))
		counts = append(counts, min(max(d.Step*math.Round(x/d.Step), d.Low), d.High))
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
