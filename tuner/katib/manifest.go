package katib

import (
	"cmp"
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

// mapping has the fields of a part of a manifest.
type mapping map[string]yaml.Node

// part returns the mapping that is a field, which is empty if there is none.
func (m mapping) part(name string) (out mapping, err error) {
	if n := m[name]; n.Kind != 0 {
		err = n.Decode(&out)
	}
	return out, err
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
	var file mapping
	if err := yaml.Unmarshal(text, &file); err != nil {
		return nil, err
	}
	s, err := file.part("spec")
	o, objectiveErr := s.part("objective")
	a, algorithmErr := s.part("algorithm")
	if err := cmp.Or(err, objectiveErr, algorithmErr); err != nil {
		return nil, err
	}
	x := &Experiment{}
	for _, part := range []struct {
		path  string
		in    mapping
		known []string
	}{
		{"", file, []string{"spec", "apiVersion", "kind", "metadata", "status"}},
		{"spec.", s, []string{"objective", "algorithm", "earlyStopping", "maxTrialCount", "parameters"}},
		{"spec.objective.", o, []string{"type", "objectiveMetricName"}},
		{"spec.algorithm.", a, []string{"algorithmName", "algorithmSettings"}},
	} {
		for _, name := range slices.Sorted(maps.Keys(part.in)) {
			node := part.in[name]
			switch {
			case slices.Contains(part.known, name):
			case slices.Contains(running, name):
				x.Left = append(x.Left, part.path+name)
			default:
				return nil, refuse(&node, part.path+name, "has no counterpart in a study", remove)
			}
		}
	}
	if !given.Objective {
		if x.Objective, err = o.objective(); err != nil {
			return nil, err
		}
	}
	if n := s["maxTrialCount"]; !given.MaxTrials && n.Kind != 0 {
		if x.MaxTrials, err = strconv.Atoi(n.Value); err != nil || x.MaxTrials < 1 {
			return nil, refuse(&n, "spec.maxTrialCount", "must be a whole number of at least 1", "correct it, or give --max-trials")
		}
	}
	if n := s["earlyStopping"]; !given.Pruner && n.Kind != 0 {
		return nil, refuse(&n, "spec.earlyStopping", "is not the same as any pruner of the tuner", "remove it, and give --pruner, such as --pruner median")
	}
	return x, a.algorithm(x, given)
}

func (m mapping) objective() (study.Objective, error) {
	typ, metric := m["type"], m["objectiveMetricName"]
	out := study.Objective{Name: metric.Value}
	if out.Direction.UnmarshalText([]byte(typ.Value)) != nil {
		return out, refuse(&typ, "spec.objective.type", "must be minimize or maximize", "correct it, or give --minimize or --maximize")
	}
	if metric.Kind != yaml.ScalarNode || out.Name == "" {
		return out, refuse(&metric, "spec.objective.objectiveMetricName", "must name a metric", "correct it, or give --minimize or --maximize")
	}
	return out, nil
}

// algorithm sets the proposer and the seed. Without an algorithm the default stays.
func (m mapping) algorithm(x *Experiment, given Given) error {
	algorithm, list := m["algorithmName"], m["algorithmSettings"]
	name, ok := Proposer(algorithm.Value)
	if algorithm.Kind != 0 && !ok && !given.Proposer {
		known := strings.Join(Algorithms(), ", ")
		return refuse(&algorithm, "spec.algorithm.algorithmName", "must be one of "+known, "give --proposer, such as --proposer bkb")
	}
	if !given.Proposer {
		x.Proposer = name
	}
	var settings []struct {
		Name  string    `yaml:"name"`
		Value yaml.Node `yaml:"value"`
	}
	if list.Kind != 0 {
		if err := list.Decode(&settings); err != nil {
			return err
		}
	}
	for _, s := range settings {
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
