package server_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/bkbtuner/bkb/proto/tuner/v1"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

// slowReads reads trials until it may go on.
type slowReads struct {
	tuner.Service
	running atomic.Int32
	most    atomic.Int32
	begun   chan struct{}
	goOn    chan struct{}
}

func (s *slowReads) Trials(ctx context.Context, name string, f tuner.Filter) ([]study.Trial, bool, error) {
	n := s.running.Add(1)
	defer s.running.Add(-1)
	for most := s.most.Load(); n > most && !s.most.CompareAndSwap(most, n); most = s.most.Load() {
	}
	s.begun <- struct{}{}
	<-s.goOn
	return s.Service.Trials(ctx, name, f)
}

// TestReadsTakeTurns checks that few of many reads of one token run at once, that another
// token, an admin and an ask need not wait for them, and that each is answered.
func TestReadsTakeTurns(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(4))
	path := tokenPath(t)
	reader, other, worker, admin := addToken(t, path, server.Scope{Role: server.RoleRead}), addToken(t, path, server.Scope{Role: server.RoleRead}),
		addToken(t, path, server.Scope{Role: server.RoleWorker}), addToken(t, path, server.Scope{Role: server.RoleAdmin})
	const many, ofOne = 24, 2
	s := &slowReads{Service: withStudies(t), begun: make(chan struct{}, many), goOn: make(chan struct{})}
	c := pb.NewTunerClient(start(t, s, server.Options{TokenFile: path}).connect(t))
	answers := make(chan error, 2*many)
	list := func(by wire.Token) {
		go func() {
			_, err := c.ListTrials(as(t.Context(), by), &pb.ListTrialsRequest{Parent: "studies/mine"})
			answers <- err
		}()
	}
	begins := func(n int, what string) {
		t.Helper()
		for range n {
			select {
			case <-s.begun:
			case <-time.After(time.Minute):
				t.Fatalf("%s do not begin", what)
			}
		}
	}
	for range many {
		list(reader)
	}
	begins(ofOne, "reads of one token")
	list(other)
	begins(1, "reads of another token")
	list(admin)
	begins(1, "reads of an admin")
	if _, err := c.Ask(as(t.Context(), worker), &pb.AskRequest{Parent: "studies/mine"}); err != nil {
		t.Error(err)
	}
	// One that gives up while it waits leaves the others their turns.
	ctx, cancel := context.WithTimeout(as(t.Context(), reader), 50*time.Millisecond)
	defer cancel()
	if _, err := c.ListTrials(ctx, &pb.ListTrialsRequest{Parent: "studies/mine"}); err == nil {
		t.Error("a read had its turn before those that came earlier")
	}
	if most := s.most.Load(); most != ofOne+2 {
		t.Errorf("%d reads ran at once, want %d", most, ofOne+2)
	}
	go func() {
		for range s.begun {
		}
	}()
	defer close(s.begun)
	close(s.goOn)
	for range many + 2 {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
}
