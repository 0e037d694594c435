package katib

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/study"
)

const manifestHead = "apiVersion: kubeflow.org/v1beta1\nkind: Experiment\nmetadata: {name: a}\nspec:\n  parameters: []\n"

// TestReadManifest reads the settings of a study, in YAML and JSON.
func TestReadManifest(t *testing.T) {
	all := Experiment{
		Objective: study.Objective{Name: "accuracy", Direction: study.Maximize}, MaxTrials: 12, Proposer: "random", Seed: 7, HasSeed: true,
		Left: []string{"spec.parallelTrialCount", "spec.trialTemplate", "spec.objective.additionalMetricNames"},
	}
	for name, text := range map[string]string{
		"YAML": manifestHead + `
  objective: {type: maximize, objectiveMetricName: accuracy, additionalMetricNames: [loss]}
  algorithm: {algorithmName: random, algorithmSettings: [{name: random_state, value: "7"}]}
  maxTrialCount: 12
  parallelTrialCount: 3
  trialTemplate: {trialSpec: {}}
status: {}
`,
		"JSON": `{"apiVersion":"kubeflow.org/v1beta1","kind":"Experiment","spec":{"parameters":[],"trialTemplate":{},"parallelTrialCount":3,
"objective":{"type":"maximize","objectiveMetricName":"accuracy","additionalMetricNames":["loss"]},
"algorithm":{"algorithmName":"random","algorithmSettings":[{"name":"random_state","value":"7"}]},"maxTrialCount":12}}`,
	} {
		got, err := ReadManifest([]byte(text), Given{})
		if err != nil || !reflect.DeepEqual(*got, all) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
		if !IsExperiment([]byte(text)) {
			t.Errorf("%s is not taken for an Experiment", name)
		}
	}
	if IsExperiment([]byte("parameters: []")) {
		t.Error("a list of parameters is taken for an Experiment")
	}
}

// TestManifestRefused checks that a setting which a study does not have is refused, with its line,
// and that a flag in its place is taken instead.
func TestManifestRefused(t *testing.T) {
	const good = "  objective: {type: minimize, objectiveMetricName: loss}\n"
	for name, c := range map[string]struct {
		spec  string
		want  string
		given Given // with which it is read, if it can be
	}{
		"goal":           {"  objective: {type: minimize, objectiveMetricName: loss, goal: 0.1}\n", "line 6: spec.objective.goal 0.1: has no counterpart", Given{}},
		"failures":       {good + "  maxFailedTrialCount: 3\n", "line 7: spec.maxFailedTrialCount 3: has no counterpart", Given{}},
		"nas":            {good + "  nasConfig: {operations: []}\n", "spec.nasConfig", Given{}},
		"unknown":        {good + "  maxTrialcount: 3\n", "spec.maxTrialcount 3", Given{}},
		"direction":      {"  objective: {type: lower, objectiveMetricName: loss}\n", "line 6: spec.objective.type lower: must be minimize or maximize", Given{Objective: true}},
		"no metric":      {"  objective: {type: minimize}\n", "spec.objective.objectiveMetricName (absent)", Given{Objective: true}},
		"no objective":   {"  maxTrialCount: 3\n", "spec.objective.type (absent)", Given{Objective: true}},
		"trials":         {good + "  maxTrialCount: many\n", "line 7: spec.maxTrialCount many", Given{MaxTrials: true}},
		"no trials":      {good + "  maxTrialCount: 0\n", "at least 1", Given{MaxTrials: true}},
		"algorithm":      {good + "  algorithm: {algorithmName: cmaes}\n", "line 7: spec.algorithm.algorithmName cmaes", Given{Proposer: true}},
		"setting":        {good + "  algorithm: {algorithmName: bayesianoptimization, algorithmSettings: [{name: acq_func, value: EI}]}\n", "algorithmSettings acq_func EI", Given{Proposer: true}},
		"seed":           {good + "  algorithm: {algorithmName: random, algorithmSettings: [{name: random_state, value: x}]}\n", "random_state x", Given{Seed: true}},
		"early stopping": {good + "  earlyStopping: {algorithmName: medianstop}\n", "spec.earlyStopping (a list or mapping)", Given{Pruner: true}},
	} {
		_, err := ReadManifest([]byte(manifestHead+c.spec), Given{})
		var field *FieldError
		if !errors.As(err, &field) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if c.given != (Given{}) {
			if _, err := ReadManifest([]byte(manifestHead+c.spec), c.given); err != nil {
				t.Errorf("%s, with the flag: %v", name, err)
			}
		}
	}
	seeded := "  objective: {type: minimize, objectiveMetricName: loss}\n  algorithm: {algorithmName: tpe, algorithmSettings: [{name: random_state, value: 7}, {name: gamma, value: 1}]}\n"
	if x, err := ReadManifest([]byte(manifestHead+seeded), Given{Proposer: true}); err != nil || x.Seed != 7 || !x.HasSeed || x.Proposer != "" {
		t.Errorf("the seed beside a given proposer: %+v, %v", x, err)
	}
	if _, err := ReadManifest([]byte(manifestHead+"  objective: [1]\n"), Given{}); err == nil {
		t.Error("a list was taken for an objective")
	}
}
