package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// TestAskFits checks that an ask is refused before it hands out a trial if its answer
// would not fit. The answer of the largest ask that is not refused fits.
func TestAskFits(t *testing.T) {
	parameters := make(map[string]any)
	for i := range 100 {
		parameters[fmt.Sprintf("p%03d", i)] = map[string]any{"type": "categorical", "values": []string{strings.Repeat("a", 1000), strings.Repeat("b", 1000)}}
	}
	text, err := json.Marshal(map[string]any{"version": 1, "parameters": parameters})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, wiretest.New(t), server.Options{})
	c := pb.NewTunerClient(r.connect(t))
	create := createRequest("wide")
	create.Spec.Space = string(text)
	if _, err := c.CreateStudy(t.Context(), create); err != nil {
		t.Fatal(err)
	}
	for _, request := range []*pb.AskRequest{{Parent: "studies/wide", Count: 1000}, {Parent: "studies/wide", AutoCount: true}} {
		_, err = c.Ask(t.Context(), request)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), "must be at most 30") {
			t.Errorf("%v: %v", request, err)
		}
	}
	if s, err := c.GetStudy(t.Context(), &pb.GetStudyRequest{Name: "studies/wide"}); err != nil || s.Running != 0 {
		t.Errorf("refused asks handed out %d trials, %v", s.GetRunning(), err)
	}
	asked, err := c.Ask(t.Context(), &pb.AskRequest{Parent: "studies/wide", Count: 30})
	if err != nil || len(asked.Trials) != 30 || len(asked.Trials[29].Config) != 100 {
		t.Errorf("%d trials, %v", len(asked.GetTrials()), err)
	}
	for i, count := range []int32{31, 30} { // the outcome is told all the same
		told, err := c.Tell(t.Context(), &pb.TellRequest{Name: asked.GetTrials()[i].GetName(), Outcome: newTrials(1)[0].GetOutcome(), Next: &pb.AskRequest{Count: count}})
		if err != nil || told.GetTrial().GetState() != pb.TrialState_TRIAL_STATE_COMPLETED || (told.GetNext() != nil) != (count == 30) {
			t.Errorf("with %d next trials %s, %d of them, %v", count, told.GetTrial().GetState(), len(told.GetNext().GetTrials()), err)
		}
	}
}

// heavyweight returns a service with trials that are larger than an answer.
type heavyweight struct{ *wiretest.Service }

func (h heavyweight) trial(n int) study.Trial {
	t := study.Trial{Number: n, State: study.Completed, Outcome: study.Outcome{State: study.Completed, Cost: 1, Message: strings.Repeat("m", study.MaxTextBytes)}}
	t.Attributes = study.Attributes{"a": strings.Repeat("v", 60_000)}
	for e := range 100 {
		t.Late = append(t.Late, study.LateResult{Epoch: e + 1, Outcome: study.Outcome{State: study.Failed, Attributes: t.Attributes}})
	}
	t.Reports = heavyReports()
	return t
}

var heavyReports = sync.OnceValue(func() []study.Report {
	reports := make([]study.Report, study.MaxReports)
	for i := range reports {
		reports[i] = study.Report{Step: int64(i), Epoch: 1, Values: []study.NamedValue{{Name: strings.Repeat("n", 100), Value: 1}}}
	}
	return reports
})

func (h heavyweight) trials(n int) (list []study.Trial) {
	for i := range n {
		t := h.trial(0)
		t.Number = i
		list = append(list, t)
	}
	return list
}

func (h heavyweight) Ask(context.Context, string, study.Ask) (tuner.Asked, error) {
	return tuner.Asked{Trials: h.trials(100)}, nil
}

func (h heavyweight) Tell(context.Context, string, study.Tell) (tuner.Told, error) {
	return tuner.Told{Trial: h.trial(0)}, nil
}

func (h heavyweight) Add(context.Context, string, study.Add) (study.Trial, error) {
	return h.trial(0), nil
}

func (h heavyweight) Trial(context.Context, string, int) (study.Trial, error) { return h.trial(0), nil }

func (h heavyweight) Trials(_ context.Context, _ string, f tuner.Filter) ([]study.Trial, bool, error) {
	list := h.trials(4)
	return list[min(f.First, 4):], false, nil
}

func (h heavyweight) Best(context.Context, string) ([]study.Trial, error) {
	list := h.trials(200)
	for i := range list {
		list[i].Late = nil
	}
	return list, nil
}

// TestHeavyweightTrials checks that every call answers trials that are larger than 4
// MiB, and names the parts left out.
func TestHeavyweightTrials(t *testing.T) {
	r := start(t, heavyweight{withStudies(t)}, server.Options{})
	c := pb.NewTunerClient(r.connect(t))
	const parent, trial = "studies/mine", "studies/mine/trials/0"
	check := func(what string, m *pb.Trial, omitted ...string) {
		t.Helper()
		if m.GetOutcome().GetState() != pb.TrialState_TRIAL_STATE_COMPLETED || !slices.Equal(m.GetOmitted(), omitted) {
			t.Errorf("%s: %s without %q, want %q", what, m.GetOutcome().GetState(), m.GetOmitted(), omitted)
		}
	}
	asked, err := c.Ask(t.Context(), &pb.AskRequest{Parent: parent})
	if err != nil || len(asked.Trials) != 100 {
		t.Fatalf("asking: %d trials, %v", len(asked.GetTrials()), err)
	}
	check("asking", asked.Trials[99], wire.OmittedLate, wire.OmittedAttributes)
	told, err := c.Tell(t.Context(), &pb.TellRequest{Name: trial, Outcome: &pb.Outcome{State: pb.TrialState_TRIAL_STATE_INFEASIBLE}})
	if err != nil {
		t.Fatalf("telling: %v", err)
	}
	check("telling", told.Trial, wire.OmittedLate)
	added, err := c.AddTrial(t.Context(), &pb.AddTrialRequest{Parent: parent, Outcome: &pb.Outcome{State: pb.TrialState_TRIAL_STATE_INFEASIBLE}})
	if err != nil {
		t.Fatalf("adding: %v", err)
	}
	check("adding", added, wire.OmittedLate)
	page, err := c.ListTrials(t.Context(), &pb.ListTrialsRequest{Parent: parent, View: pb.TrialView_TRIAL_VIEW_FULL})
	if err != nil || len(page.Trials) != 4 || page.NextPageToken != "" {
		t.Fatalf("listing: %d trials, %v", len(page.GetTrials()), err)
	}
	check("listing", page.Trials[3], wire.OmittedLate, wire.OmittedReports)
	all, pages := 0, 0
	for token := ""; pages == 0 || token != ""; pages++ {
		page, err := c.GetBest(t.Context(), &pb.GetBestRequest{Parent: parent, PageToken: token})
		if err != nil {
			t.Fatalf("the best from %q on: %v", token, err)
		}
		for _, m := range page.Trials {
			check("the best", m)
			if m.Number != int64(all) {
				t.Fatalf("trial %d came where %d was due", m.Number, all)
			}
			all++
		}
		token = page.NextPageToken
	}
	if all != 200 || pages < 2 {
		t.Errorf("%d of the best on %d pages", all, pages)
	}
}

// largeOutcome returns a service whose trial has an outcome of 5 MB. A program from
// before the limit could store it.
type largeOutcome struct{ *wiretest.Service }

func (l largeOutcome) trial() study.Trial {
	t := study.Trial{State: study.Completed, Outcome: study.Outcome{State: study.Completed, Cost: 2}}
	for i := range study.MaxMetrics {
		t.Outcome.Metrics = append(t.Outcome.Metrics, study.Metric{Name: fmt.Sprint("m", i), Values: make([]float64, study.MaxReplicates)})
	}
	return t
}

func (l largeOutcome) Tell(context.Context, string, study.Tell) (tuner.Told, error) {
	return tuner.Told{Trial: l.trial()}, nil
}

func (l largeOutcome) Trial(context.Context, string, int) (study.Trial, error) { return l.trial(), nil }

func (l largeOutcome) Trials(context.Context, string, tuner.Filter) ([]study.Trial, bool, error) {
	return []study.Trial{l.trial()}, false, nil
}

func (l largeOutcome) Best(context.Context, string) ([]study.Trial, error) {
	return []study.Trial{l.trial()}, nil
}

func (l largeOutcome) Watch(context.Context, string, tuner.From) iter.Seq2[tuner.Event, error] {
	return func(yield func(tuner.Event, error) bool) {
		t := l.trial()
		yield(tuner.Event{Position: 1, Kind: "told", Trial: &t}, nil)
	}
}

// TestLargeOutcome checks that every call answers a trial whose outcome is larger than
// an answer. The metrics are left out, and the answer says so.
func TestLargeOutcome(t *testing.T) {
	c := pb.NewTunerClient(start(t, largeOutcome{withStudies(t)}, server.Options{}).connect(t))
	const parent, trial = "studies/mine", "studies/mine/trials/0"
	check := func(what string, m *pb.Trial, err error) {
		t.Helper()
		if o := m.GetOutcome(); err != nil || o.GetState() != pb.TrialState_TRIAL_STATE_COMPLETED || o.GetCost() != 2 || len(o.GetMetrics()) > 0 || !slices.Equal(m.GetOmitted(), []string{wire.OmittedOutcome}) {
			t.Errorf("%s: %v without %q, %v", what, o, m.GetOmitted(), err)
		}
	}
	one, err := c.GetTrial(t.Context(), &pb.GetTrialRequest{Name: trial})
	check("the trial", one, err)
	told, err := c.Tell(t.Context(), &pb.TellRequest{Name: trial, Outcome: &pb.Outcome{State: pb.TrialState_TRIAL_STATE_INFEASIBLE}})
	check("telling", told.GetTrial(), err)
	list, err := c.ListTrials(t.Context(), &pb.ListTrialsRequest{Parent: parent})
	if err != nil || len(list.GetTrials()) != 1 {
		t.Fatalf("listing: %v", err)
	}
	check("listing", list.GetTrials()[0], nil)
	best, err := c.GetBest(t.Context(), &pb.GetBestRequest{Parent: parent})
	if err != nil || len(best.GetTrials()) != 1 {
		t.Fatalf("the best: %v", err)
	}
	check("the best", best.GetTrials()[0], nil)
	stream, err := c.Watch(t.Context(), &pb.WatchRequest{Parent: parent})
	if err != nil {
		t.Fatal(err)
	}
	event, err := stream.Recv()
	check("watching", event.GetTrial(), err)
}
