package optuna

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"reflect"
	"slices"

	pb "github.com/bkbtuner/bkb/proto/optuna"
	"github.com/bkbtuner/bkb/tuner/runner/metric"
)

// Distribution is a distribution of Optuna.
type Distribution struct {
	Kind    string // the name of its class
	Log     bool
	Choices []any // of a categorical, numbers as json.Number
}

// The classes of today. Older files have others, such as UniformDistribution.
const (
	categorical   = "CategoricalDistribution"
	floatingPoint = "FloatDistribution"
	integer       = "IntDistribution"
)

// ParseDistribution reads a distribution in Optuna's JSON, or in its short form such as
// {"type": "float", "low": 0, "high": 1}.
func ParseDistribution(text string) (Distribution, error) {
	type attributes struct {
		Log     bool  `json:"log"`
		Choices []any `json:"choices"`
	}
	var d struct {
		Name       string     `json:"name"`
		Attributes attributes `json:"attributes"`
		Type       string     `json:"type"`
		attributes
	}
	decoder := json.NewDecoder(bytes.NewReader(metric.QuoteWords([]byte(text))))
	decoder.UseNumber() // integers may have more digits than a float64
	if err := decoder.Decode(&d); err != nil {
		return Distribution{}, err
	}
	if _, err := decoder.Token(); err != io.EOF {
		return Distribution{}, fmt.Errorf("there is more text after the distribution")
	}
	kind := d.Name
	if kind == "" {
		kind, d.Attributes = map[string]string{"categorical": categorical, "float": floatingPoint, "int": integer}[d.Type], d.attributes
	}
	switch kind {
	case categorical:
		if len(d.Attributes.Choices) == 0 {
			return Distribution{}, fmt.Errorf("a categorical distribution needs choices")
		}
	case floatingPoint, "UniformDistribution", "LogUniformDistribution", "DiscreteUniformDistribution",
		integer, "IntUniformDistribution", "IntLogUniformDistribution":
	default:
		return Distribution{}, fmt.Errorf("the class %.40q is not one of Optuna's distributions", d.Name+d.Type)
	}
	return Distribution{Kind: kind, Log: d.Attributes.Log, Choices: d.Attributes.Choices}, nil
}

// integral tells whether the values are integers.
func (d Distribution) integral() bool {
	return d.Kind == integer || d.Kind == "IntUniformDistribution" || d.Kind == "IntLogUniformDistribution"
}

// conflict returns why a parameter with this distribution cannot have another one, or "".
// The range may change.
func (d Distribution) conflict(other Distribution) string {
	switch {
	case d.Kind != other.Kind:
		return fmt.Sprintf("must be a %s as in earlier trials, not a %s", d.Kind, other.Kind)
	case d.Log != other.Log:
		return fmt.Sprintf("must have log = %t as in earlier trials", d.Log)
	case !slices.EqualFunc(d.Choices, other.Choices, equalChoices):
		return fmt.Sprintf("must have the choices %v of earlier trials", d.Choices)
	default:
		return ""
	}
}

// equalChoices tells whether two choices are equal. In Python 1 equals 1.0.
func equalChoices(a, b any) bool {
	x, isX := a.(json.Number)
	y, isY := b.(json.Number)
	if !isX || !isY {
		return reflect.DeepEqual(a, b)
	}
	i, errI := x.Int64()
	j, errJ := y.Int64()
	if errI == nil && errJ == nil {
		return i == j
	}
	f, errF := x.Float64()
	g, errG := y.Float64()
	return x == y || errF == nil && errG == nil && f == g
}

// check refuses a value that clients could not read.
func (d Distribution) check(name string, value float64) error {
	switch {
	case d.Kind == categorical && !(value > -1 && value < float64(len(d.Choices))):
		return invalid(fmt.Sprintf("params[%.60q]", name), value, fmt.Sprintf("must be the index of one of %d choices", len(d.Choices)),
			"send distribution.to_internal_repr(value)")
	case d.integral() && (math.IsNaN(value) || math.IsInf(value, 0)):
		return invalid(fmt.Sprintf("params[%.60q]", name), value, "must be an integer", "send distribution.to_internal_repr(value)")
	}
	return nil
}

// parameter checks a parameter of a trial.
func (s *State) parameter(name string, value float64, text string) error {
	d, err := ParseDistribution(text)
	if err != nil {
		return invalid("distribution", fmt.Sprintf("%.200q", text), "must be a distribution in Optuna's JSON ("+err.Error()+")",
			"send optuna.distributions.distribution_to_json(distribution)")
	}
	if known, ok := s.distributions[name]; ok {
		if why := known.conflict(d); why != "" {
			return invalid(fmt.Sprintf("distributions[%.60q]", name), fmt.Sprintf("%.200q", text), why, "give the parameter another name")
		}
	}
	return d.check(name, value)
}

// know notes the distributions of a trial.
func (s *State) know(distributions map[string]string) {
	for name, text := range distributions {
		if s.texts[name] == text {
			continue
		}
		if d, err := ParseDistribution(text); err == nil {
			s.distributions[name], s.texts[name] = d, text
		}
	}
}

// template checks a trial that was run or configured elsewhere.
func (s *State) template(t *pb.Trial) error {
	if _, ok := states[t.State]; !ok {
		return invalidState("template_trial.state", t.State)
	}
	if err := checkValues("template_trial.values", t.State, len(t.Values), len(s.directions)); err != nil {
		return err
	}
	for name, value := range t.Params {
		text, ok := t.Distributions[name]
		if !ok {
			return invalid(fmt.Sprintf("template_trial.distributions[%.60q]", name), "none", "must be there, because the parameter is", "send one for each parameter")
		}
		d, err := ParseDistribution(text)
		if err != nil {
			return invalid(fmt.Sprintf("template_trial.distributions[%.60q]", name), fmt.Sprintf("%.200q", text),
				"must be a distribution in Optuna's JSON ("+err.Error()+")", "send optuna.distributions.distribution_to_json(distribution)")
		}
		if err := d.check(name, value); err != nil {
			return err
		}
	}
	for _, a := range []struct {
		field string
		of    map[string]string
	}{{"template_trial.user_attributes", t.UserAttributes}, {"template_trial.system_attributes", t.SystemAttributes}} {
		for key, value := range a.of {
			if err := checkAttribute(fmt.Sprintf("%s[%.60q]", a.field, key), value); err != nil {
				return err
			}
		}
	}
	if err := checkTime("template_trial.datetime_start", t.DatetimeStart); err != nil {
		return err
	}
	return checkTime("template_trial.datetime_complete", t.DatetimeComplete)
}
