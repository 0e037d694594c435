package katib

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	pb "github.com/bkbtuner/bkb/proto/katib"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// proposers are the algorithms of Katib that the tuner has, and its own one.
var proposers = map[string]string{
	"bayesianoptimization": "bkb", "bkb": "bkb", "grid": "grid", "random": "random", "sobol": "sobol",
}

// Proposer returns the proposer for the name of an algorithm of Katib.
func Proposer(algorithm string) (name string, ok bool) {
	name, ok = proposers[algorithm]
	return name, ok
}

// Algorithms lists the names that [Proposer] knows.
func Algorithms() []string { return slices.Sorted(maps.Keys(proposers)) }

// SeedSetting is the name of Katib's setting for the seed.
const SeedSetting = "random_state"

// FieldError refuses a field of an Experiment.
type FieldError struct{ Field, Value, Rule, Remedy string }

func (e *FieldError) Error() string {
	return fmt.Sprintf("%s %s: %s; %s", e.Field, e.Value, e.Rule, e.Remedy)
}

// specOf returns the settings of the study of an experiment. How many trials there are,
// and when the goal is reached, is up to Katib.
func specOf(e *pb.Experiment, lease time.Duration) (study.Spec, error) {
	s := e.GetSpec()
	out := study.Spec{Lease: lease}
	if e.GetName() == "" {
		return out, &FieldError{"experiment.name", `""`, "must not be empty", "send the name of the Experiment"}
	}
	if s.GetNasConfig() != nil {
		return out, &FieldError{"spec.nasConfig", "(given)", "the tuner does not search architectures", "remove it, and describe the choices as parameters"}
	}
	var err error
	if out.Space, err = spaceOf(s.GetParameterSpecs().GetParameters()); err != nil {
		return out, err
	}
	o := s.GetObjective()
	objective := study.Objective{Name: o.GetObjectiveMetricName()}
	switch o.GetType() {
	case pb.ObjectiveType_MINIMIZE:
		objective.Direction = study.Minimize
	case pb.ObjectiveType_MAXIMIZE:
		objective.Direction = study.Maximize
	default:
		return out, &FieldError{"spec.objective.type", o.GetType().String(), "must be minimize or maximize", "correct it"}
	}
	out.Objectives = []study.Objective{objective}
	out.Proposer, out.Seed, err = proposerOf(s.GetAlgorithm(), e.GetName())
	return out, err
}

// proposerOf returns the proposer and the seed that an algorithm stands for. Settings other
// than the seed are options of the proposer.
func proposerOf(a *pb.AlgorithmSpec, experiment string) (c study.Component, seed uint64, err error) {
	name, ok := Proposer(a.GetAlgorithmName())
	if !ok {
		return c, 0, &FieldError{"spec.algorithm.algorithmName", strconv.Quote(a.GetAlgorithmName()), "must be one of " + strings.Join(Algorithms(), ", "), "correct it"}
	}
	// The same experiment has the same seed in each call.
	h := fnv.New64a()
	h.Write([]byte(experiment))
	c, seed = study.Component{Name: name}, h.Sum64()>>11
	var options [][2]string
	for _, s := range a.GetAlgorithmSettings() {
		field := "spec.algorithm.algorithmSettings " + s.GetName()
		if s.GetName() != SeedSetting {
			options = append(options, [2]string{s.GetName(), s.GetValue()})
			continue
		}
		if seed, err = strconv.ParseUint(s.GetValue(), 10, 64); err != nil {
			return c, 0, &FieldError{field, strconv.Quote(s.GetValue()), "must be a whole number of at least 0", "correct it"}
		}
	}
	if len(options) == 0 {
		return c, seed, nil
	}
	text, twice := study.TextOptions(options)
	if twice != "" {
		return c, 0, &FieldError{"spec.algorithm.algorithmSettings", twice, "is given twice", "leave one out"}
	}
	c.Options = text
	return c, seed, nil
}

var (
	typeNames = map[pb.ParameterType]string{
		pb.ParameterType_DOUBLE: "double", pb.ParameterType_INT: "int",
		pb.ParameterType_DISCRETE: "discrete", pb.ParameterType_CATEGORICAL: "categorical",
	}
	distributionNames = map[pb.Distribution]string{
		pb.Distribution_UNIFORM: "uniform", pb.Distribution_LOG_UNIFORM: "logUniform",
		pb.Distribution_NORMAL: "normal", pb.Distribution_LOG_NORMAL: "logNormal",
	}
)

// spaceOf reads parameters in Katib's form of files, so that each fault has the same message
// as in a file.
func spaceOf(parameters []*pb.ParameterSpec) (*space.Space, error) {
	type feasible struct {
		Min          string   `json:"min,omitempty"`
		Max          string   `json:"max,omitempty"`
		Step         string   `json:"step,omitempty"`
		List         []string `json:"list,omitempty"`
		Distribution string   `json:"distribution,omitempty"`
	}
	type parameter struct {
		Name     string   `json:"name"`
		Type     string   `json:"parameterType"`
		Feasible feasible `json:"feasibleSpace"`
	}
	if len(parameters) == 0 {
		return nil, &FieldError{"spec.parameters", "(empty)", "there must be a parameter", "add what the trials should vary"}
	}
	list := make([]parameter, len(parameters))
	for i, p := range parameters {
		f := p.GetFeasibleSpace()
		list[i] = parameter{p.GetName(), typeNames[p.GetParameterType()], feasible{
			f.GetMin(), f.GetMax(), f.GetStep(), f.GetList(), distributionNames[f.GetDistribution()],
		}}
	}
	text, err := json.Marshal(list)
	if err != nil {
		return nil, err
	}
	s, _, err := space.ParseKatib(text)
	for _, fault := range space.Faults(err) {
		fault.Line = 0 // there is no file
	}
	return s, err
}

// configOf reads the parameters of a trial. ok is false if they are not a configuration of
// the space.
func configOf(s *space.Space, t *pb.Trial) (c space.Config, ok bool) {
	var entries []space.Assignment
	for _, a := range t.GetSpec().GetParameterAssignments().GetAssignments() {
		entries = append(entries, space.Assignment{Name: a.GetName(), Value: space.String(a.GetValue())})
	}
	c, err := s.Complete(space.NewConfig(entries...))
	return c, err == nil
}
