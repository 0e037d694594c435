package server_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// TestWorkerNames: a name that is bound to a token is that token's. Another one cannot
// ask under it, and cannot report, heartbeat, set attributes or tell a trial that it
// runs, under no epoch either. Admins can. It holds over a restart.
func TestWorkerNames(t *testing.T) {
	path := tokenPath(t)
	worker := server.Scope{Role: server.RoleWorker}
	bind := func(names ...string) wire.Token {
		token, _, err := server.AddWorkerToken(path, worker, names, "", time.Time{})
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	a, b, several := bind("node-a"), bind("node-b"), bind("x", "y")
	free, admin := addToken(t, path, worker), addToken(t, path, server.Scope{Role: server.RoleAdmin})
	service := onDisk(t, filepath.Join(t.TempDir(), "tuner.db"))
	r := start(t, service, server.Options{TokenFile: path})
	c := pb.NewTunerClient(r.connect(t))
	ask := func(token wire.Token, name string) (*pb.Trial, codes.Code) {
		answer, err := c.Ask(as(t.Context(), token), &pb.AskRequest{Parent: "studies/theirs", Worker: name})
		if err != nil {
			return nil, status.Code(err)
		}
		return answer.GetTrials()[0], codes.OK
	}
	for _, test := range []struct {
		token wire.Token
		name  string
		want  codes.Code
	}{
		{a, "node-b", codes.PermissionDenied},
		{a, "anything", codes.PermissionDenied},
		{free, "node-a", codes.PermissionDenied},
		{several, "", codes.PermissionDenied},
		{several, "y", codes.OK},
		{free, "", codes.OK},
		{free, "anything", codes.OK},
		{admin, "node-a", codes.OK},
	} {
		if _, code := ask(test.token, test.name); code != test.want {
			t.Errorf("asking as %q: %s, want %s", test.name, code, test.want)
		}
	}
	unnamed, code := ask(a, "")
	again, _ := ask(a, "")
	if code != codes.OK || unnamed.GetWorker() != "node-a" || again.GetName() == unnamed.GetName() {
		t.Fatalf("asking without a name: %s, %v, and again %v", code, unnamed, again)
	}
	calls := func(trial *pb.Trial) map[string]func(ctx context.Context, epoch int64) error {
		return map[string]func(ctx context.Context, epoch int64) error{
			"report": func(ctx context.Context, epoch int64) error {
				_, err := c.Report(ctx, &pb.ReportRequest{Name: trial.GetName(), Epoch: epoch, Reports: []*pb.IntermediateValues{{Step: 1, Values: map[string]float64{"loss": 1}}}})
				return err
			},
			"heartbeat": func(ctx context.Context, epoch int64) error {
				_, err := c.Heartbeat(ctx, &pb.HeartbeatRequest{Name: trial.GetName(), Epoch: epoch})
				return err
			},
			"attributes": func(ctx context.Context, _ int64) error {
				_, err := c.SetAttributes(ctx, &pb.SetAttributesRequest{Name: trial.GetName(), Attributes: map[string]string{"k": "v"}})
				return err
			},
			"tell": func(ctx context.Context, epoch int64) error {
				_, err := c.Tell(ctx, &pb.TellRequest{Name: trial.GetName(), Epoch: epoch, Outcome: &pb.Outcome{State: pb.TrialState_TRIAL_STATE_FAILED}})
				return err
			},
		}
	}
	for _, other := range []wire.Token{b, free, several} {
		for what, call := range calls(unnamed) {
			for _, epoch := range []int64{0, 1} {
				if got := status.Code(call(as(t.Context(), other), epoch)); got != codes.PermissionDenied {
					t.Errorf("%s of another's trial at epoch %d: %s", what, epoch, got)
				}
			}
		}
	}
	if got := status.Code(calls(unnamed)["tell"](as(t.Context(), a), 0)); got != codes.OK {
		t.Errorf("its own tell: %s", got)
	}
	if got := status.Code(calls(again)["tell"](as(t.Context(), admin), 0)); got != codes.OK {
		t.Errorf("an admin's tell: %s", got)
	}
	mine, _ := ask(free, "another")
	if got := status.Code(calls(mine)["tell"](as(t.Context(), a), 0)); got != codes.PermissionDenied {
		t.Errorf("a bound token's tell of a trial of a name that is not bound: %s", got)
	}
	if got := status.Code(calls(mine)["tell"](as(t.Context(), free), 0)); got != codes.OK {
		t.Errorf("the tell of a name that is not bound: %s", got)
	}
}

// TestWorkerNamesRefused: names are for workers.
func TestWorkerNamesRefused(t *testing.T) {
	for what, test := range map[string]struct {
		role  server.Role
		names []string
	}{
		"of an admin": {server.RoleAdmin, []string{"w"}},
		"empty":       {server.RoleWorker, []string{""}},
		"many":        {server.RoleWorker, make([]string, 1000)},
	} {
		if _, _, err := server.AddWorkerToken(tokenPath(t), server.Scope{Role: test.role}, test.names, "", time.Time{}); err == nil {
			t.Errorf("names %s were taken", what)
		}
	}
}
