package server_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// newTrials returns n trials that can be added to the study mine.
func newTrials(n int) (out []*pb.NewTrial) {
	for i := range n {
		out = append(out, &pb.NewTrial{
			RequestId: fmt.Sprint("r", i), Config: map[string]*pb.Value{"x": {Kind: &pb.Value_FloatValue{FloatValue: 0.5}}},
			Outcome: &pb.Outcome{State: pb.TrialState_TRIAL_STATE_COMPLETED, Metrics: map[string]*pb.Metric{"loss": {Values: []float64{float64(i)}}}},
		})
	}
	return out
}

// TestAddTrials checks that many trials are added up to a limit. The error names the
// refused trial and says whether trials are stored.
func TestAddTrials(t *testing.T) {
	service := engine.Open(memory.New(), engine.Options{})
	t.Cleanup(func() { service.Close() })
	_, c, _, err := wire.DecodeCreate(createRequest("mine"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := service.CreateStudy(t.Context(), "mine", c); err != nil {
		t.Fatal(err)
	}
	r := start(t, service, server.Options{Limits: server.Limits{Rate: -1}})
	stub := pb.NewTunerClient(r.connect(t))
	const most = 1000
	there := func() int {
		s, err := service.Study(t.Context(), "mine")
		if err != nil {
			t.Fatal(err)
		}
		return s.Trials
	}
	change := func(n, i int, f func(*pb.NewTrial)) []*pb.NewTrial {
		trials := newTrials(n)
		f(trials[i])
		return trials
	}
	for _, c := range []struct {
		what    string
		trials  []*pb.NewTrial
		message string
		index   int // of the refused one, or −1 if nothing is stored
		there   int // trials afterwards
	}{
		{"too many", newTrials(most + 1), "trials = 1001: must be at most 1000 at once; send fewer per call", -1, 0},
		{"no id", change(9, 4, func(n *pb.NewTrial) { n.RequestId = "" }), "trials[4].request_id = \"\": must not be empty", -1, 0},
		{"unknown state", change(9, 4, func(n *pb.NewTrial) { n.Outcome.State = 77 }), "trials[4].outcome.state = ", -1, 0},
		{"both", change(9, 4, func(n *pb.NewTrial) { n.Enqueue = true }), "trials[4].enqueue = true: ", -1, 0},
		{"out of range", change(9, 0, func(n *pb.NewTrial) { n.Config["x"].Kind = &pb.Value_FloatValue{FloatValue: 7} }), "trials[0]: ", 0, 0},
		{"no outcome", change(9, 4, func(n *pb.NewTrial) { n.Outcome = nil }), "trials[4]: ", 4, 4},
		{"same id", change(9, 7, func(n *pb.NewTrial) { n.RequestId = "r0" }), "trials[7]: ", 7, 7},
	} {
		_, err := stub.AddTrials(t.Context(), &pb.AddTrialsRequest{Parent: "studies/mine", Trials: c.trials})
		a, _ := wire.ReadError(err)
		if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), c.message) || a.At != (c.index >= 0) || a.At && a.Index != c.index {
			t.Errorf("%s: %v, index %t %d", c.what, err, a.At, a.Index)
		}
		if n := there(); n != c.there {
			t.Errorf("%s: %d trials are there, want %d", c.what, n, c.there)
		}
	}
	// The most allowed, of which seven exist. The queue takes its own.
	trials := newTrials(most)
	trials[8].Enqueue, trials[8].Outcome = true, nil
	for range 2 {
		answer, err := stub.AddTrials(t.Context(), &pb.AddTrialsRequest{Parent: "studies/mine", Trials: trials})
		if err != nil || len(answer.Numbers) != most || answer.Numbers[0] != 0 || answer.Numbers[most-1] != most-1 || there() != most {
			t.Errorf("%d numbers, %d trials, %v", len(answer.GetNumbers()), there(), err)
		}
	}
	// AddTrial of one of them has the same answer.
	one, err := stub.AddTrial(t.Context(), &pb.AddTrialRequest{RequestId: "r9", Parent: "studies/mine", Config: trials[9].Config, Outcome: trials[9].Outcome})
	if err != nil || one.Number != 9 || there() != most {
		t.Errorf("trial %v, %v", one, err)
	}
	s, err := service.Study(t.Context(), "mine")
	if err != nil || s.Counts[study.Queued] != 1 || s.Counts[study.Completed] != most-1 {
		t.Errorf("the study has %v, %v", s.Counts, err)
	}
	// More than one message may hold.
	trials = change(2, 1, func(n *pb.NewTrial) { n.Attributes = map[string]string{"log": strings.Repeat("x", 1<<20)} })
	_, err = stub.AddTrials(t.Context(), &pb.AddTrialsRequest{Parent: "studies/mine", Trials: trials})
	if status.Code(err) != codes.ResourceExhausted || !strings.Contains(err.Error(), "1048576") {
		t.Errorf("a message that is too large: %v", err)
	}
}

// TestAddTrialsRate checks that a request counts as one call, however many trials it
// has.
func TestAddTrialsRate(t *testing.T) {
	path := tokenPath(t)
	token := addToken(t, path, server.Scope{Role: server.RoleWorker, Studies: []string{"mine"}})
	r := start(t, withStudies(t), server.Options{TokenFile: path, Limits: server.Limits{Rate: 1e-6, Burst: 2}})
	stub := pb.NewTunerClient(r.connect(t))
	for range 2 {
		if _, err := stub.AddTrials(as(t.Context(), token), &pb.AddTrialsRequest{Parent: "studies/mine", Trials: newTrials(50)}); err != nil {
			t.Error(err)
		}
	}
	if _, err := stub.AddTrials(as(t.Context(), token), &pb.AddTrialsRequest{Parent: "studies/mine"}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a third call: %v", err)
	}
}
