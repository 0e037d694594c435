package server_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/wire"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// TestWorkerNames checks that a bound name belongs to its token, also after a restart.
// Other tokens cannot ask under it. They cannot report, heartbeat, set attributes or
// tell a trial under it, also not without an epoch. Admins can.
func TestWorkerNames(t *testing.T) {
	path := tokenPath(t)
	worker := server.Scope{Role: server.RoleWorker}
	bind := func(names ...string) wire.Token {
		token, _, err := server.AddToken(path, worker, "", time.Time{}, names...)
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
	for _, other := range []wire.Token{b, free, several} {
		for what, call := range actions(c, unnamed) {
			for _, epoch := range []int64{0, 1} {
				if got := status.Code(call(as(t.Context(), other), epoch)); got != codes.PermissionDenied {
					t.Errorf("%s of another's trial at epoch %d: %s", what, epoch, got)
				}
			}
		}
	}
	if got := status.Code(actions(c, unnamed)["tell"](as(t.Context(), a), 0)); got != codes.OK {
		t.Errorf("its own tell: %s", got)
	}
	if got := status.Code(actions(c, again)["tell"](as(t.Context(), admin), 0)); got != codes.OK {
		t.Errorf("an admin's tell: %s", got)
	}
	mine, _ := ask(free, "another")
	if got := status.Code(actions(c, mine)["tell"](as(t.Context(), a), 0)); got != codes.PermissionDenied {
		t.Errorf("a bound token's tell of a trial of a name that is not bound: %s", got)
	}
	if got := status.Code(actions(c, mine)["tell"](as(t.Context(), free), 0)); got != codes.OK {
		t.Errorf("the tell of a name that is not bound: %s", got)
	}
}

// TestWorkerNamesRefused checks that only tokens of workers can have names.
func TestWorkerNamesRefused(t *testing.T) {
	for what, test := range map[string]struct {
		role  server.Role
		names []string
	}{
		"of an admin": {server.RoleAdmin, []string{"w"}},
		"empty":       {server.RoleWorker, []string{""}},
		"many":        {server.RoleWorker, make([]string, 1000)},
	} {
		if _, _, err := server.AddToken(tokenPath(t), server.Scope{Role: test.role}, "", time.Time{}, test.names...); err == nil {
			t.Errorf("names %s were taken", what)
		}
	}
}

// actions returns the calls on a trial that only its holder may make, by name.
func actions(c pb.TunerClient, trial *pb.Trial) map[string]func(ctx context.Context, epoch int64) error {
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

// TestNamesByUse checks that a trial belongs to the token or certificate that it was
// given to. A worker name belongs to its first user in a study. Both hold after a
// restart. Revoking the owner frees both, and an admin may act on all.
func TestNamesByUse(t *testing.T) {
	tokens, db := tokenPath(t), filepath.Join(t.TempDir(), "tuner.db")
	worker := server.Scope{Role: server.RoleWorker}
	first, info, err := server.AddToken(tokens, worker, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	second, admin := addToken(t, tokens, worker), addToken(t, tokens, server.Scope{Role: server.RoleAdmin})
	authority := wiretest.NewAuthority(t)
	pair := authority.Issue(t, "server", "127.0.0.1")
	o := server.Options{
		TokenFile: tokens, CertFile: pair.CertFile, KeyFile: pair.KeyFile, ClientCAFile: authority.CAFile,
		ClientScopes: map[string]server.Scope{"node-c": worker},
	}
	ask := func(ctx context.Context, c pb.TunerClient, study, name string) (*pb.Trial, error) {
		answer, err := c.Ask(ctx, &pb.AskRequest{Parent: "studies/" + study, Worker: name})
		if err != nil {
			return nil, err
		}
		return answer.GetTrials()[0], nil
	}
	denied := func(what string, err error, holder string) {
		t.Helper()
		if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), holder) {
			t.Errorf("%s: %v, want %q in it", what, err, holder)
		}
	}
	owner := "token " + info.ID
	var named, unnamed, byCertificate *pb.Trial
	open := onDisk
	for round := range 2 { // the second round is after a restart
		service := open(t, db)
		r := start(t, service, o)
		c := pb.NewTunerClient(r.connect(t, trusting(t, authority, nil)))
		node := pb.NewTunerClient(r.connect(t, trusting(t, authority, bearing(t, authority.Issue(t, "node-c", "node-c")))))
		if round == 0 {
			if named, err = ask(as(t.Context(), first), c, "mine", "gpu"); err != nil {
				t.Fatal(err)
			}
			if unnamed, err = ask(as(t.Context(), first), c, "mine", ""); err != nil {
				t.Fatal(err)
			}
			if byCertificate, err = ask(t.Context(), node, "mine", "cpu"); err != nil {
				t.Fatal(err)
			}
		}
		for what, test := range map[string]struct {
			ctx    context.Context
			client pb.TunerClient
			trial  *pb.Trial
			holder string
		}{
			"another token, named":         {as(t.Context(), second), c, named, `is held by ` + owner + ` as worker "gpu"`},
			"another token, unnamed":       {as(t.Context(), second), c, unnamed, `is held by ` + owner + `. Use`},
			"a certificate":                {t.Context(), node, named, owner},
			"a token, by a certificate":    {as(t.Context(), second), c, byCertificate, "certificate node-c"},
			"the owner of another's trial": {as(t.Context(), first), c, byCertificate, "certificate node-c"},
		} {
			for action, do := range actions(test.client, test.trial) {
				for _, epoch := range []int64{0, 1} {
					denied(what+", "+action, do(test.ctx, epoch), test.holder)
				}
			}
		}
		for name, err := range map[string]error{"gpu": func() error { _, err := ask(as(t.Context(), second), c, "mine", "gpu"); return err }(), "cpu": func() error { _, err := ask(as(t.Context(), second), c, "mine", "cpu"); return err }()} {
			denied("asking as "+name, err, `the worker name "`+name+`" belongs to `)
		}
		if _, err := ask(as(t.Context(), second), c, "theirs", "gpu"); err != nil {
			t.Errorf("the name in another study: %v", err)
		}
		if again, err := ask(as(t.Context(), first), c, "mine", "gpu"); err != nil || again.GetName() != named.GetName() {
			t.Errorf("the owner asks again and gets %v, %v", again, err)
		}
		if err := actions(c, byCertificate)["heartbeat"](as(t.Context(), admin), 0); err != nil {
			t.Errorf("an admin: %v", err)
		}
		if round == 0 {
			r.stop()
			if err := service.Close(); err != nil {
				t.Fatal(err)
			}
			open = fromDisk
			continue
		}
		if _, err := ask(as(t.Context(), admin), c, "mine", "gpu"); err != nil {
			t.Errorf("an admin asks under the name: %v", err)
		}
		_, err = ask(as(t.Context(), second), c, "mine", "gpu")
		denied("asking after an admin", err, `the worker name "gpu" belongs to `+owner)
		if err := server.RevokeToken(tokens, info.ID); err != nil {
			t.Fatal(err)
		}
		if taken, err := ask(as(t.Context(), second), c, "mine", "gpu"); err != nil || taken.GetName() != named.GetName() {
			t.Errorf("after its owner was revoked the name gives %v, %v", taken, err)
		}
		_, err = ask(t.Context(), node, "mine", "gpu")
		denied("asking under a name that was taken over", err, `the worker name "gpu" belongs to token `)
		denied("telling a trial that was taken over", actions(node, named)["tell"](t.Context(), 1), " is held by token ")
		for _, trial := range []*pb.Trial{named, unnamed} {
			if err := actions(c, trial)["tell"](as(t.Context(), second), 0); err != nil {
				t.Errorf("after its holder was revoked: %v", err)
			}
		}
	}
}

// TestNamesRace checks that one of many tokens gets a new name when all ask at once
// under it.
func TestNamesRace(t *testing.T) {
	tokens := tokenPath(t)
	var workers []wire.Token
	for range 16 {
		workers = append(workers, addToken(t, tokens, server.Scope{Role: server.RoleWorker}))
	}
	c := pb.NewTunerClient(start(t, onDisk(t, filepath.Join(t.TempDir(), "tuner.db")), server.Options{TokenFile: tokens}).connect(t))
	answers := make(chan error, len(workers))
	for _, token := range workers {
		go func() {
			_, err := c.Ask(as(t.Context(), token), &pb.AskRequest{Parent: "studies/mine", Worker: "new"})
			answers <- err
		}()
	}
	got := 0
	for range cap(answers) {
		switch err := <-answers; status.Code(err) {
		case codes.OK:
			got++
		case codes.PermissionDenied:
		default:
			t.Error(err)
		}
	}
	if got != 1 {
		t.Errorf("%d tokens work under one name", got)
	}
}

// TestNamesTakenOver checks that a name, and all running trials under it, pass from a
// revoked token to the one that asks next, and to no other. The trials that an admin
// started under a new name are not handed to a worker.
func TestNamesTakenOver(t *testing.T) {
	tokens := tokenPath(t)
	scope := server.Scope{Role: server.RoleWorker}
	first, info, err := server.AddToken(tokens, scope, "", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	second, third, admin := addToken(t, tokens, scope), addToken(t, tokens, scope), addToken(t, tokens, server.Scope{Role: server.RoleAdmin})
	c := pb.NewTunerClient(start(t, onDisk(t, filepath.Join(t.TempDir(), "tuner.db")), server.Options{TokenFile: tokens}).connect(t))
	by := func(token wire.Token) context.Context { return as(t.Context(), token) }
	ask := func(token wire.Token, m *pb.AskRequest) ([]*pb.Trial, error) {
		m.Parent = "studies/mine"
		a, err := c.Ask(by(token), m)
		return a.GetTrials(), err
	}
	two, err := ask(first, &pb.AskRequest{Worker: "gpu", Count: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.RevokeToken(tokens, info.ID); err != nil {
		t.Fatal(err)
	}
	mine, err := ask(second, &pb.AskRequest{Worker: "gpu", New: true})
	if err != nil {
		t.Fatal(err)
	}
	for i, trial := range append(two, mine...) {
		for what, do := range actions(c, trial) {
			if err := do(by(third), 1); status.Code(err) != codes.PermissionDenied {
				t.Errorf("trial %d, %s by a third token: %v", i, what, err)
			}
		}
	}
	if _, err := ask(third, &pb.AskRequest{Worker: "gpu", New: true}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a third token asks under the name: %v", err)
	}
	if back, err := ask(second, &pb.AskRequest{Worker: "gpu", Count: 3}); err != nil || len(back) != 3 {
		t.Errorf("the new owner gets back %d trials, %v", len(back), err)
	}
	if err := actions(c, two[1])["tell"](by(second), 1); err != nil {
		t.Errorf("the new owner tells an old trial: %v", err)
	}

	own, err := ask(admin, &pb.AskRequest{Worker: "desk"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ask(third, &pb.AskRequest{Worker: "desk"}); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "is held by token ") {
		t.Errorf("a worker asks for the trial of an admin: %v", err)
	}
	if _, err := ask(third, &pb.AskRequest{Worker: "desk", New: true}); err != nil {
		t.Errorf("a worker asks for a new trial under a name that only an admin used: %v", err)
	}
	if _, err := ask(admin, &pb.AskRequest{Worker: "gpu", New: true}); err != nil {
		t.Errorf("an admin asks under the name of a worker: %v", err)
	}
	if back, err := ask(second, &pb.AskRequest{Worker: "gpu", Count: 3}); err != nil || len(back) != 3 {
		t.Errorf("with the trial of an admin the owner gets back %d trials, %v", len(back), err)
	}
	if err := actions(c, own[0])["tell"](by(admin), 1); err != nil {
		t.Errorf("the admin tells its trial: %v", err)
	}
}

// TestNamesOutOfScope checks that a certificate that may no longer work for the study
// owns nothing in it.
func TestNamesOutOfScope(t *testing.T) {
	tokens, db := tokenPath(t), filepath.Join(t.TempDir(), "tuner.db")
	worker := server.Scope{Role: server.RoleWorker}
	other := addToken(t, tokens, worker)
	authority := wiretest.NewAuthority(t)
	pair, certificate := authority.Issue(t, "server", "127.0.0.1"), authority.Issue(t, "node-c", "node-c")
	open := onDisk
	for _, test := range []struct {
		scope server.Scope
		owns  bool
	}{
		{worker, true},
		{server.Scope{Role: server.RoleWorker, Studies: []string{"mine"}}, true},
		{server.Scope{Role: server.RoleWorker, Studies: []string{"theirs"}}, false},
	} {
		service := open(t, db)
		r := start(t, service, server.Options{
			TokenFile: tokens, CertFile: pair.CertFile, KeyFile: pair.KeyFile, ClientCAFile: authority.CAFile,
			ClientScopes: map[string]server.Scope{"node-c": test.scope},
		})
		c := pb.NewTunerClient(r.connect(t, trusting(t, authority, nil)))
		if test.owns {
			node := pb.NewTunerClient(r.connect(t, trusting(t, authority, bearing(t, certificate))))
			if _, err := node.Ask(t.Context(), &pb.AskRequest{Parent: "studies/mine", Worker: "gpu"}); err != nil {
				t.Fatalf("%s: %v", test.scope, err)
			}
		}
		_, err := c.Ask(as(t.Context(), other), &pb.AskRequest{Parent: "studies/mine", Worker: "gpu"})
		if denied := status.Code(err) == codes.PermissionDenied; denied != test.owns {
			t.Errorf("%s: another token asks: %v", test.scope, err)
		}
		r.stop()
		if err := service.Close(); err != nil {
			t.Fatal(err)
		}
		open = fromDisk
	}
}
