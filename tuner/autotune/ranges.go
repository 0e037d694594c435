package autotune

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/learners/training"
)

// Range is the range in which a hyper-parameter is searched, both ends included.
type Range struct{ Low, High float64 }

// ParseRange reads a name and a range such as lambda=1e-12..1.
func ParseRange(text string) (name string, r Range, err error) {
	name, ends, ok := strings.Cut(text, "=")
	low, high, both := strings.Cut(ends, "..")
	if !ok || !both || name == "" {
		return "", r, fmt.Errorf("%q is not name=low..high; write it as lambda=1e-12..1", text)
	}
	for _, end := range []struct {
		text string
		x    *float64
	}{{low, &r.Low}, {high, &r.High}} {
		if *end.x, err = strconv.ParseFloat(end.text, 64); err != nil || math.IsInf(*end.x, 0) || math.IsNaN(*end.x) {
			return "", r, fmt.Errorf("%q: %q is not a finite number; write the range as %s=1e-12..1", text, end.text, name)
		}
	}
	return name, r, nil
}

// String writes r in the format of ParseRange.
func (r Range) String() string { return number(r.Low) + ".." + number(r.High) }

// number writes counts without an exponent.
func number(x float64) string {
	if x == math.Trunc(x) && math.Abs(x) < 1e15 {
		return strconv.FormatFloat(x, 'f', -1, 64)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// RangeError reports a range in which a hyper-parameter cannot be searched.
type RangeError struct {
	Name         string
	Range        Range
	Rule, Remedy string
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("the range %s=%s: %s; %s", e.Name, e.Range, e.Rule, e.Remedy)
}

// CheckRanges returns a *RangeError for ranges that are wrong for any data. [New] checks
// the rest.
func CheckRanges(a training.Algorithm, fixed training.Values, ranges map[string]Range) error {
	dims, err := theory.Space(a.Name, theory.Data{Rows: math.MaxInt32})
	if err != nil {
		return err
	}
	return checkRanges(a, dims, fixed, ranges)
}

func checkRanges(a training.Algorithm, dims []theory.Dimension, fixed training.Values, ranges map[string]Range) error {
	for _, name := range slices.Sorted(maps.Keys(ranges)) {
		i := slices.IndexFunc(dims, func(d theory.Dimension) bool { return d.Name == name })
		rule, remedy := "", ""
		switch _, set := fixed[name]; {
		case i < 0 || dims[i].Scale == theory.Choice || dims[i].Fidelity:
			rule, remedy = unsearched(a, dims, i, name, ranges[name])
		case set:
			rule, remedy = "it has a fixed value", "leave out the range or the value"
		default:
			rule, remedy = refuse(&dims[i], ranges[name])
		}
		if rule != "" {
			return &RangeError{name, ranges[name], rule, remedy}
		}
	}
	return nil
}

// unsearched returns why a name, perhaps of the i-th dimension, has no range.
func unsearched(a training.Algorithm, dims []theory.Dimension, i int, name string, r Range) (rule, remedy string) {
	var names []string
	for _, d := range dims {
		if d.Scale == theory.Log && !d.Fidelity {
			names = append(names, d.Name)
		}
	}
	switch {
	case i >= 0 && dims[i].Fidelity:
		return "one training passes through all its values", fmt.Sprintf("set %s=%s", name, number(r.High))
	case i >= 0:
		return "it has choices instead of a range, " + strings.Join(dims[i].Choices, ", "), "set one of them, or leave it out"
	case slices.ContainsFunc(a.Parameters, func(p training.Parameter) bool { return p.Name == name }):
		return a.Name + " does not search it", fmt.Sprintf("set %s=%s; the searched ones are %s", name, number(r.Low), strings.Join(names, ", "))
	}
	return a.Name + " has no hyper-parameter of this name", "the searched ones are " + strings.Join(names, ", ")
}

// refuse returns why d cannot be searched in r. The rule is empty if it can.
func refuse(d *theory.Dimension, r Range) (rule, remedy string) {
	step := cmp.Or(d.Step, 1)
	most := min(d.Most, math.MaxInt32) // the most that a count can be
	if d.Step > 0 {
		most = d.Step * math.Floor(most/d.Step)
	}
	between := fmt.Sprintf("choose both ends from %s to %s", number(d.Least), number(most))
	switch {
	case r.Low > r.High:
		return "the lower end is above the upper one", "swap them"
	case r.Low == r.High:
		return "it has one value", fmt.Sprintf("set %s=%s", d.Name, number(r.Low))
	case !d.Integer && r.Low <= d.Least:
		return fmt.Sprintf("it must be above %s, because it is searched on a logarithmic scale", number(d.Least)), "choose a small lower end, such as " + number(rounded(d.Low))
	case !d.Integer && r.High >= d.Most:
		return fmt.Sprintf("it must be below %s", number(d.Most)), "choose a smaller upper end, such as " + number(rounded(d.High))
	case !d.Integer:
		return "", ""
	case r.Low != math.Trunc(r.Low) || r.High != math.Trunc(r.High):
		return "it must be a whole number", between
	case r.Low < d.Least || r.High > most:
		return fmt.Sprintf("it must be from %s to %s", number(d.Least), number(most)), between
	case math.Mod(r.Low, step) != 0 || math.Mod(r.High, step) != 0:
		return fmt.Sprintf("it must be a multiple of %s", number(step)), "choose such ends"
	}
	return "", ""
}

// searched returns a dimension with the range that was asked for, or with theory's range in
// round numbers. Its start is the value of the range that is nearest to theory's.
func (t *Tuning) searched(d theory.Dimension) theory.Dimension {
	if d.Scale == theory.Choice || d.Fidelity {
		return d
	}
	if !d.Integer {
		d.Low, d.High, d.Start = rounded(d.Low), rounded(d.High), rounded(d.Start)
	}
	if r, ok := t.options.Ranges[d.Name]; ok {
		d.Low, d.High = r.Low, r.High
		t.moved = t.moved || d.Start < d.Low || d.Start > d.High
	}
	d.Start = min(max(d.Start, d.Low), d.High)
	return d
}
