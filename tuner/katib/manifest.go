package katib

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/bkbtuner/bkb/tuner/study"
)

// Experiment has the settings of an Experiment that describe a study.
type Experiment struct {
	Objective study.Objective
	MaxTrials int // 0 for no limit
	Proposer  string
	Seed      uint64 // valid if HasSeed
	HasSeed   bool
	// Left are the fields that say how Katib runs trials, which a study does not say.
	Left []string
}

// Given says which settings the user gives apart from the Experiment. They are not read.
type Given struct{ Objective, MaxTrials, Proposer, Pruner, Seed bool }

// manifest and the types below are those of Katib. Rest has the fields that they lack.
type manifest struct {
	Spec spec                 `yaml:"spec"`
	Rest map[string]yaml.Node `yaml:",inline"`
}

type spec struct {
	Objective     objective            `yaml:"objective"`
	Algorithm     algorithm            `yaml:"algorithm"`
	EarlyStopping yaml.Node            `yaml:"earlyStopping"`
	MaxTrials     yaml.Node            `yaml:"maxTrialCount"`
	Rest          map[string]yaml.Node `yaml:",inline"`
}

type objective struct {
	Type   yaml.Node            `yaml:"type"`
	Metric yaml.Node            `yaml:"objectiveMetricName"`
	Rest   map[string]yaml.Node `yaml:",inline"`
}

type algorithm struct {
	Name     yaml.Node            `yaml:"algorithmName"`
	Settings []setting            `yaml:"algorithmSettings"`
	Rest     map[string]yaml.Node `yaml:",inline"`
}

type setting struct {
	Name  string    `yaml:"name"`
	Value yaml.Node `yaml:"value"`
}

// running are the fields of a spec, and of an objective, that say how Katib runs trials and
// reads their results.
var running = []string{
	"parallelTrialCount", "resumePolicy", "trialTemplate", "metricsCollectorSpec",
	"additionalMetricNames", "metricStrategies",
}

const remove = "remove it from the file, or take the parameters alone with tuner space convert --to yaml"

// IsExperiment tells whether a file in Katib's form is a whole Experiment, and not only a
// list of parameters.
func IsExperiment(text []byte) bool {
	var file struct {
		Spec yaml.Node `yaml:"spec"`
	}
	return yaml.Unmarshal(text, &file) == nil && file.Spec.Kind != 0
}

// ReadManifest reads the file of an Experiment. Each setting that describes the study is either read or
// refused with a [*FieldError], so that none is lost.
func ReadManifest(text []byte, given Given) (*Experiment, error) {
	var file manifest
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	x, s := &Experiment{}, file.Spec
	for _, part := range []struct {
		path   string
		rest   map[string]yaml.Node
		ignore []string
	}{
		{"", file.Rest, []string{"apiVersion", "kind", "metadata", "status"}},
		{"spec.", s.Rest, []string{"parameters"}},
		{"spec.objective.", s.Objective.Rest, nil},
		{"spec.algorithm.", s.Algorithm.Rest, nil},
	} {
		for _, name := range slices.Sorted(maps.Keys(part.rest)) {
			node := part.rest[name]
			switch {
			case slices.Contains(part.ignore, name):
			case slices.Contains(running, name):
				x.Left = append(x.Left, part.path+name)
			default:
				return nil, refuse(&node, part.path+name, "has no counterpart in a study", remove)
			}
		}
	}
	var err error
	if !given.Objective {
		if x.Objective, err = s.Objective.read(); err != nil {
			return nil, err
		}
	}
	if n := s.MaxTrials; !given.MaxTrials && n.Kind != 0 {
		if x.MaxTrials, err = strconv.Atoi(n.Value); err != nil || x.MaxTrials < 1 {
			return nil, refuse(&n, "spec.maxTrialCount", "must be a whole number of at least 1", "correct it, or give --max-trials")
		}
	}
	if n := s.EarlyStopping; !given.Pruner && n.Kind != 0 {
		return nil, refuse(&n, "spec.earlyStopping", "is not the same as any pruner of the tuner", "remove it, and give --pruner, such as --pruner median")
	}
	return x, s.Algorithm.read(x, given)
}

func (o objective) read() (study.Objective, error) {
	out := study.Objective{Name: o.Metric.Value}
	if out.Direction.UnmarshalText([]byte(o.Type.Value)) != nil {
		return out, refuse(&o.Type, "spec.objective.type", "must be minimize or maximize", "correct it, or give --minimize or --maximize")
	}
	if o.Metric.Kind != yaml.ScalarNode || out.Name == "" {
		return out, refuse(&o.Metric, "spec.objective.objectiveMetricName", "must name a metric", "correct it, or give --minimize or --maximize")
	}
	return out, nil
}

// read sets the proposer and the seed. Without an algorithm the default stays.
func (a algorithm) read(x *Experiment, given Given) error {
	name, ok := Proposer(a.Name.Value)
	if a.Name.Kind != 0 && !ok && !given.Proposer {
		known := strings.Join(Algorithms(), ", ")
		return refuse(&a.Name, "spec.algorithm.algorithmName", "must be one of "+known, "give --proposer, such as --proposer bkb")
	}
	if !given.Proposer {
		x.Proposer = name
	}
	for _, s := range a.Settings {
		field := "spec.algorithm.algorithmSettings " + s.Name
		if s.Name != SeedSetting && given.Proposer {
			continue
		}
		if s.Name != SeedSetting {
			return refuse(&s.Value, field, "has no counterpart in the tuner", "remove it, or give --proposer with options of the tuner")
		}
		if given.Seed {
			continue
		}
		seed, err := strconv.ParseUint(s.Value.Value, 10, 64)
		if err != nil {
			return refuse(&s.Value, field, "must be a whole number of at least 0", "correct it, or give --seed")
		}
		x.Seed, x.HasSeed = seed, true
	}
	return nil
}

func refuse(n *yaml.Node, field, rule, remedy string) error {
	value := n.Value
	switch {
	case n.Kind == 0:
		value = "(absent)"
	case n.Kind != yaml.ScalarNode:
		value = "(a list or mapping)"
	}
	return &FieldError{fmt.Sprintf("line %d: %s", n.Line, field), value, rule, remedy}
}
