package katib

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/bkbtuner/bkb/proto/katib"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func open(t *testing.T) *engine.Engine {
	t.Helper()
	svc := engine.Open(memory.New(), engine.Options{LongLived: true})
	t.Cleanup(func() { svc.Close() })
	return svc
}

// bowl is an experiment of one parameter.
func bowl(change func(*pb.ExperimentSpec)) *pb.Experiment {
	e := &pb.Experiment{Name: "bowl", Spec: &pb.ExperimentSpec{
		ParameterSpecs: &pb.ExperimentSpec_ParameterSpecs{Parameters: []*pb.ParameterSpec{
			{Name: "x", ParameterType: pb.ParameterType_DOUBLE, FeasibleSpace: &pb.FeasibleSpace{Min: "0", Max: "1"}},
		}},
		Objective: &pb.ObjectiveSpec{Type: pb.ObjectiveType_MINIMIZE, ObjectiveMetricName: "loss"},
		Algorithm: &pb.AlgorithmSpec{AlgorithmName: "sobol"},
	}}
	if change != nil {
		change(e.Spec)
	}
	return e
}

// suggest asks for the suggestions from first on.
func suggest(t *testing.T, s *Suggestion, e *pb.Experiment, first, count int, trials ...*pb.Trial) ([]*pb.Trial, error) {
	t.Helper()
	reply, err := s.GetSuggestions(t.Context(), &pb.GetSuggestionsRequest{
		Experiment: e, Trials: trials, CurrentRequestNumber: int32(count), TotalRequestNumber: int32(first + count),
	})
	var out []*pb.Trial
	for _, a := range reply.GetParameterAssignments() {
		out = append(out, &pb.Trial{
			Name: a.TrialName, Spec: &pb.TrialSpec{ParameterAssignments: &pb.TrialSpec_ParameterAssignments{Assignments: a.Assignments}},
			Status: &pb.TrialStatus{Condition: pb.TrialStatus_RUNNING},
		})
	}
	if err == nil && len(out) != count {
		t.Fatalf("%d suggestions, not %d", len(out), count)
	}
	return out, err
}

// end gives a trial its condition and metrics.
func end(trial *pb.Trial, c pb.TrialStatus_TrialConditionType, metrics ...string) *pb.Trial {
	trial.Status = &pb.TrialStatus{Condition: c, Observation: &pb.Observation{}}
	for i := 0; i < len(metrics); i += 2 {
		trial.Status.Observation.Metrics = append(trial.Status.Observation.Metrics, &pb.Metric{Name: metrics[i], Value: metrics[i+1]})
	}
	return trial
}

// wantStatus checks the code of an error and a part of its message.
func wantStatus(t *testing.T, err error, code codes.Code, part string) {
	t.Helper()
	if status.Code(err) != code || !strings.Contains(status.Convert(err).Message(), part) {
		t.Errorf("%v, want %v with %q", err, code, part)
	}
}

// TestSpec reads all of an experiment that describes a study.
func TestSpec(t *testing.T) {
	e := bowl(func(s *pb.ExperimentSpec) {
		s.ParameterSpecs.Parameters = []*pb.ParameterSpec{
			{Name: "lr", ParameterType: pb.ParameterType_DOUBLE, FeasibleSpace: &pb.FeasibleSpace{Min: "1e-4", Max: "1", Distribution: pb.Distribution_LOG_UNIFORM}},
			{Name: "width", ParameterType: pb.ParameterType_INT, FeasibleSpace: &pb.FeasibleSpace{Min: "8", Max: "64", Step: "8", Distribution: pb.Distribution_UNIFORM}},
			{Name: "batch", ParameterType: pb.ParameterType_DISCRETE, FeasibleSpace: &pb.FeasibleSpace{List: []string{"64", "16"}}},
			{Name: "kind", ParameterType: pb.ParameterType_CATEGORICAL, FeasibleSpace: &pb.FeasibleSpace{List: []string{"sgd", "16"}}},
		}
		s.Objective = &pb.ObjectiveSpec{Type: pb.ObjectiveType_MAXIMIZE, ObjectiveMetricName: "accuracy", Goal: 0.9}
		s.Algorithm = &pb.AlgorithmSpec{AlgorithmName: "bayesianoptimization", AlgorithmSettings: []*pb.AlgorithmSetting{
			{Name: "random_state", Value: "7"}, {Name: "start", Value: "12"}, {Name: "cost", Value: "told"},
		}}
	})
	got, err := specOf(e, DefaultLease)
	if err != nil {
		t.Fatal(err)
	}
	sp, err := space.New(
		space.NewFloat("lr", 1e-4, 1).WithScale(space.Log),
		space.NewInt("width", 8, 64).WithStep(space.Int(8)),
		space.NewOrdinal("batch", space.Int(16), space.Int(64)),
		space.NewCategorical("kind", space.String("sgd"), space.String("16")),
	)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Space.Equal(sp) {
		t.Errorf("the space is\n%s", got.Space.YAML())
	}
	got.Space = nil
	want := study.Spec{
		Objectives: []study.Objective{{Name: "accuracy", Direction: study.Maximize}}, Lease: DefaultLease, Seed: 7,
		Proposer: study.Component{Name: propose.BKB, Options: `{"cost":"told","start":12}`},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestConditions tells the study each condition once, and not before a trial has ended.
func TestConditions(t *testing.T) {
	svc := open(t)
	s := NewSuggestion(svc, Options{Prefix: "katib."})
	e := bowl(nil)
	trials, err := suggest(t, s, e, 0, 12)
	if err != nil {
		t.Fatal(err)
	}
	end(trials[0], pb.TrialStatus_SUCCEEDED, "accuracy", "unavailable", "loss", "0.25", "speed", "inf", "size", "3")
	end(trials[1], pb.TrialStatus_SUCCEEDED, "loss", "unavailable")
	end(trials[2], pb.TrialStatus_SUCCEEDED, "loss", "NaN")
	end(trials[3], pb.TrialStatus_SUCCEEDED, "loss", "-inf") // which the study refuses
	end(trials[4], pb.TrialStatus_SUCCEEDED)
	end(trials[5], pb.TrialStatus_FAILED)
	end(trials[6], pb.TrialStatus_KILLED)
	end(trials[7], pb.TrialStatus_EARLYSTOPPED, "loss", "0.5")
	end(trials[8], pb.TrialStatus_METRICSUNAVAILABLE)
	end(trials[9], pb.TrialStatus_CREATED)
	end(trials[10], pb.TrialStatus_UNKNOWN)
	for range 2 {
		more, err := suggest(t, s, e, 12, 1, trials...)
		if err != nil || more[0].Name != "bowl-12" {
			t.Fatal(more, err)
		}
	}
	have, _, err := svc.Trials(t.Context(), "katib.bowl", tuner.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"completed loss=0.25 size=3", `not a number: "unavailable"`, "failed(nan)", "failed(crash): ", `not a number: (absent)`,
		"failed(crash): failed in Katib", "failed(cancelled): killed in Katib", "pruned loss=0.5", "failed(crash): Katib found no metrics",
	}
	for i, trial := range have {
		if i >= len(want) {
			if trial.State != study.Running {
				t.Errorf("trial %d is %s", i, trial.State)
			}
		} else if got := trial.Outcome.String(); !strings.Contains(got, want[i]) {
			t.Errorf("trial %d: %s, want %s", i, got, want[i])
		}
	}
	best, err := svc.Best(t.Context(), "katib.bowl")
	if err != nil || len(best) != 1 || best[0].Number != 0 {
		t.Errorf("the best is %v, %v", best, err)
	}
}

// TestRepeated answers a repeated call with the same suggestions, in each way of dividing
// them, and after a restart.
func TestRepeated(t *testing.T) {
	svc := open(t)
	e := bowl(nil)
	first, err := suggest(t, NewSuggestion(svc, Options{}), e, 0, 6)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSuggestion(svc, Options{})
	a, errA := suggest(t, s, e, 0, 2)
	b, errB := suggest(t, s, e, 2, 4)
	again := slices.Concat(a, b)
	if errA != nil || errB != nil || !slices.EqualFunc(first, again, func(x, y *pb.Trial) bool { return proto.Equal(x, y) }) {
		t.Errorf("%v, %v\n%v\n%v", errA, errB, first, again)
	}
}

// TestRebuild continues with an empty store. The trials that Katib lists are told again,
// and suggestions that it does not list are cancelled.
func TestRebuild(t *testing.T) {
	e := bowl(nil)
	trials, err := suggest(t, NewSuggestion(open(t), Options{}), e, 0, 6)
	if err != nil {
		t.Fatal(err)
	}
	end(trials[0], pb.TrialStatus_SUCCEEDED, "loss", "0.25")
	end(trials[4], pb.TrialStatus_FAILED)
	listed := slices.Concat(trials[:2], trials[3:5]) // 2 and 5 are no trials yet
	trials[1].Spec.ParameterAssignments.Assignments[0].Value = "7"

	svc := open(t)
	for round, s := range []*Suggestion{NewSuggestion(svc, Options{}), NewSuggestion(svc, Options{})} {
		more, err := suggest(t, s, e, 6+round, 1, listed...)
		if err != nil || more[0].Name != fmt.Sprintf("bowl-%d", 6+round) {
			t.Fatal(more, err)
		}
	}
	have, _, err := svc.Trials(t.Context(), "bowl", tuner.Filter{})
	if err != nil || len(have) != 8 {
		t.Fatal(have, err)
	}
	for i, want := range []string{"completed loss=0.25", "failed(cancelled)", "failed(cancelled)", "", "failed(crash)", "failed(cancelled)", "", ""} {
		got := ""
		if have[i].State.Terminal() {
			got = have[i].Outcome.String()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("trial %d: %q, want %q", i, got, want)
		}
	}
	for _, i := range []int{0, 3, 4} {
		if v, _ := have[i].Config.Get("x"); v.String() != trials[i].Spec.ParameterAssignments.Assignments[0].Value {
			t.Errorf("trial %d has x = %s, not %s", i, v, trials[i].Spec.ParameterAssignments.Assignments[0].Value)
		}
	}
}

// TestRebuildInterrupted continues a rebuilding that ended between a configuration in the
// queue and its start.
func TestRebuildInterrupted(t *testing.T) {
	e := bowl(nil)
	trials, err := suggest(t, NewSuggestion(open(t), Options{}), e, 0, 4)
	if err != nil {
		t.Fatal(err)
	}
	svc := open(t)
	s := NewSuggestion(svc, Options{})
	if _, err := s.ValidateAlgorithmSettings(t.Context(), &pb.ValidateAlgorithmSettingsRequest{Experiment: e}); err != nil {
		t.Fatal(err)
	}
	config, _ := configOf(s.experiments["bowl"].space, trials[0])
	if _, err := svc.Enqueue(t.Context(), "bowl", study.Enqueue{RequestID: "rebuilt-0", Config: config}); err != nil {
		t.Fatal(err)
	}
	more, err := suggest(t, NewSuggestion(svc, Options{}), e, 4, 1, trials...)
	if err != nil || more[0].Name != "bowl-4" {
		t.Fatal(more, err)
	}
	have, _, err := svc.Trials(t.Context(), "bowl", tuner.Filter{})
	if err != nil || len(have) != 5 {
		t.Fatal(have, err)
	}
	for i, trial := range trials {
		if got, _ := configOf(s.experiments["bowl"].space, trial); !got.Equal(have[i].Config) {
			t.Errorf("trial %d is %s, not %s", i, have[i].Config, got)
		}
	}
}

// TestRefused refuses what would give a wrong study.
func TestRefused(t *testing.T) {
	svc := open(t)
	s := NewSuggestion(svc, Options{})
	e := bowl(nil)
	for name, c := range map[string]struct {
		change func(*pb.ExperimentSpec)
		want   string
	}{
		"architecture": {func(s *pb.ExperimentSpec) { s.NasConfig = &pb.ExperimentSpec_NasConfig{} }, "spec.nasConfig"},
		"none":         {func(s *pb.ExperimentSpec) { s.ParameterSpecs = nil }, "spec.parameters (empty)"},
		"algorithm":    {func(s *pb.ExperimentSpec) { s.Algorithm.AlgorithmName = "tpe" }, `"tpe": must be one of bayesianoptimization, bkb`},
		"log": {func(s *pb.ExperimentSpec) {
			s.ParameterSpecs.Parameters[0].FeasibleSpace.Distribution = pb.Distribution_LOG_UNIFORM
		}, `parameter "x": min = 0: a log range`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := s.ValidateAlgorithmSettings(t.Context(), &pb.ValidateAlgorithmSettingsRequest{Experiment: bowl(c.change)})
			wantStatus(t, err, codes.InvalidArgument, c.want)
			if strings.Contains(err.Error(), "line ") {
				t.Errorf("%v names a line of no file", err)
			}
		})
	}
	trials, err := suggest(t, s, e, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	_, err = suggest(t, s, e, -1, 2)
	wantStatus(t, err, codes.InvalidArgument, "current_request_number 2 of total_request_number 1")

	// What anyone can send is bounded, also where a lost study would be rebuilt.
	for _, n := range [][2]int32{{math.MaxInt32, math.MaxInt32}, {study.MaxCount + 1, study.MaxCount + 3}, {1, math.MaxInt32}, {0, math.MaxInt32}, {1, study.MaxCount + 4}} {
		_, err := s.GetSuggestions(t.Context(), &pb.GetSuggestionsRequest{Experiment: e, CurrentRequestNumber: n[0], TotalRequestNumber: n[1]})
		wantStatus(t, err, codes.InvalidArgument, fmt.Sprintf("current_request_number %d of total_request_number %d: ", n[0], n[1]))
		wantStatus(t, err, codes.InvalidArgument, "at most")
	}
	if view, err := svc.Study(t.Context(), "bowl"); err != nil || view.Trials != 2 {
		t.Errorf("refused requests made trials: %d, %v", view.Trials, err)
	}
	if len(s.experiments) != 1 {
		t.Errorf("%d experiments are kept", len(s.experiments))
	}

	foreign := end(proto.CloneOf(trials[0]), pb.TrialStatus_FAILED)
	foreign.Name = "bowl-x7f3k2q1"
	_, err = suggest(t, s, e, 2, 1, foreign)
	wantStatus(t, err, codes.FailedPrecondition, "trial bowl-x7f3k2q1: the name must be bowl-NUMBER")
	foreign.Name = "bowl-7"
	_, err = suggest(t, s, e, 2, 1, foreign)
	wantStatus(t, err, codes.FailedPrecondition, "only 2 trials were suggested")

	// Another experiment of the same name, with other settings and with the same ones.
	other := bowl(func(s *pb.ExperimentSpec) { s.Objective.ObjectiveMetricName = "error" })
	_, err = s.ValidateAlgorithmSettings(t.Context(), &pb.ValidateAlgorithmSettingsRequest{Experiment: other})
	wantStatus(t, err, codes.InvalidArgument, "the study bowl (exists)")
	if _, err = suggest(t, s, e, 2, 1, end(trials[0], pb.TrialStatus_SUCCEEDED, "loss", "1")); err != nil {
		t.Fatal(err)
	}
	_, err = suggest(t, s, e, 0, 1)
	wantStatus(t, err, codes.FailedPrecondition, "but the experiment is new")

	// A trial that was added by other means takes the number of a suggestion.
	if _, err := svc.Add(t.Context(), "bowl", study.Add{Config: space.NewConfig(space.Assignment{Name: "x", Value: space.Float(0.5)}), Outcome: study.Measured("loss", 1)}); err != nil {
		t.Fatal(err)
	}
	_, err = suggest(t, s, e, 3, 1)
	wantStatus(t, err, codes.FailedPrecondition, "suggestion 3: the study bowl handed out another trial")
}

// TestDeleted rebuilds a study that was deleted under the running service.
func TestDeleted(t *testing.T) {
	svc := open(t)
	s := NewSuggestion(svc, Options{})
	e := bowl(nil)
	trials, err := suggest(t, s, e, 0, 2)
	if err != nil {
		t.Fatal(err)
	}
	if err := svc.DeleteStudy(t.Context(), "bowl"); err != nil {
		t.Fatal(err)
	}
	_, err = suggest(t, s, e, 2, 1, trials...)
	wantStatus(t, err, codes.Unavailable, "the study bowl was deleted")
	more, err := suggest(t, s, e, 2, 1, trials...)
	if err != nil || more[0].Name != "bowl-2" {
		t.Fatal(more, err)
	}
}

// TestRefusedExperimentIsHeldOnce checks that a call that waited for an experiment does not go on
// with it after it was refused and begun anew. Otherwise two calls would be in it at once.
func TestRefusedExperimentIsHeldOnce(t *testing.T) {
	s := &Suggestion{experiments: make(map[string]*experiment)}
	refused := s.hold("bowl")
	got := make(chan *experiment)
	go func() { got <- s.hold("bowl") }()
	time.Sleep(20 * time.Millisecond) // usually it waits then
	anew := new(experiment)
	anew.mu.Lock()
	s.mu.Lock()
	s.experiments["bowl"] = anew
	s.mu.Unlock()
	refused.mu.Unlock()
	select {
	case e := <-got:
		t.Fatalf("a call has the refused experiment: %v", e == refused)
	case <-time.After(50 * time.Millisecond):
	}
	anew.mu.Unlock()
	if e := <-got; e != anew {
		t.Error("the call that waited has another experiment")
	}
}
