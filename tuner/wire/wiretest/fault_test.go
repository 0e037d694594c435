package wiretest_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// cuttable is a listener whose connections can all be cut.
type cuttable struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (l *cuttable) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		l.mu.Lock()
		l.conns = append(l.conns, c)
		l.mu.Unlock()
	}
	return c, err
}

func (l *cuttable) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// lossy is a service that loses the answers of one in ten calls. It cuts the connections
// after the effect and before the answer is sent.
type lossy struct {
	tuner.Service
	l    *cuttable
	lost atomic.Int64

	mu     sync.Mutex
	chance *rand.Rand
}

func (s *lossy) lose() {
	s.mu.Lock()
	lose := s.chance.IntN(10) == 0
	s.mu.Unlock()
	if lose {
		s.lost.Add(1)
		s.l.cut()
	}
}

func (s *lossy) CreateStudy(ctx context.Context, name string, c study.Create) (tuner.Created, error) {
	defer s.lose()
	return s.Service.CreateStudy(ctx, name, c)
}

func (s *lossy) Ask(ctx context.Context, name string, c study.Ask) (tuner.Asked, error) {
	defer s.lose()
	return s.Service.Ask(ctx, name, c)
}

func (s *lossy) Tell(ctx context.Context, name string, c study.Tell) (tuner.Told, error) {
	defer s.lose()
	return s.Service.Tell(ctx, name, c)
}

func (s *lossy) Report(ctx context.Context, name string, c study.ReportValues) (tuner.Verdict, error) {
	defer s.lose()
	return s.Service.Report(ctx, name, c)
}

func (s *lossy) Enqueue(ctx context.Context, name string, c study.Enqueue) (study.Trial, error) {
	defer s.lose()
	return s.Service.Enqueue(ctx, name, c)
}

func (s *lossy) AddAll(ctx context.Context, name string, c []study.Command) ([]int, error) {
	defer s.lose()
	return s.Service.AddAll(ctx, name, c)
}

func (s *lossy) DeleteStudy(ctx context.Context, name string) error {
	defer s.lose()
	return s.Service.DeleteStudy(ctx, name)
}

// work makes the calls of a worker, in order.
func work(ctx context.Context, s tuner.Service, rounds int) error {
	for i := range rounds {
		asked, err := s.Ask(ctx, "s", study.Ask{Worker: "w", New: true})
		if err != nil {
			return err
		}
		trial := asked.Trials[0]
		if _, err := s.Report(ctx, "s", study.ReportValues{Trial: trial.Number, Reports: []study.Report{{Step: int64(i), Values: []study.NamedValue{{Name: "loss", Value: 1}}}}}); err != nil {
			return err
		}
		if _, err := s.Enqueue(ctx, "s", study.Enqueue{Config: config(0.25, int64(i%9+1))}); err != nil {
			return err
		}
		if _, err := s.Tell(ctx, "s", study.Tell{Trial: trial.Number, Epoch: trial.Epoch, Outcome: completed(float64(i))}); err != nil {
			return err
		}
		if _, err := s.AddAll(ctx, "s", several(i)); err != nil {
			return err
		}
	}
	return nil
}

// several returns trials to add in one call, some of which depend on the number.
func several(i int) (commands []study.Command) {
	for j := range 1 + i%4 {
		id := fmt.Sprint("several ", i, " ", j)
		if j == 1 {
			commands = append(commands, study.Enqueue{RequestID: id, Config: config(-0.25, int64(i%9+1))})
		} else {
			commands = append(commands, study.Add{RequestID: id, Config: config(-0.75, int64(i%9+1)), Outcome: completed(float64(i))})
		}
	}
	return commands
}

// TestExactlyOnce makes a thousand calls of which the answers to a tenth are lost after
// their effect. The study ends as if no answer had been lost.
func TestExactlyOnce(t *testing.T) {
	t.Parallel() // it waits more than it computes
	rounds := racetest.Size(80, 200)
	calm := wiretest.New(t)
	service := &lossy{Service: wiretest.New(t), l: &cuttable{Listener: listen(t)}, chance: rand.New(rand.NewPCG(1, 2))}
	serve(t, service, server.Options{Limits: free}, service.l)
	c := dial(t, service.l.Addr().String(), client.Options{Plaintext: true, RetryFor: time.Hour})
	for _, s := range []tuner.Service{calm, c} {
		if _, err := s.CreateStudy(t.Context(), "s", study.Create{Spec: spec(t)}); err != nil {
			t.Fatal(err)
		}
		if err := work(t.Context(), s, rounds); err != nil {
			t.Fatal(err)
		}
	}
	want := history(t, calm)
	if diff := cmp.Diff(want, history(t, service.Service), like...); diff != "" {
		t.Errorf("the losses show (-calm +lossy):\n%s", diff)
	}
	if diff := cmp.Diff(want, history(t, c), like...); diff != "" {
		t.Errorf("the losses show over the wire (-calm +lossy):\n%s", diff)
	}
	if lost := service.lost.Load(); int(lost) < rounds*5/20 {
		t.Errorf("only %d answers were lost: this was no test", lost)
	}
	if err := c.DeleteStudy(t.Context(), "s"); err != nil {
		t.Error(err)
	}
}

// history is the visible state of the study s.
func history(t *testing.T, s tuner.Service) (h struct {
	Study  tuner.Study
	Trials []study.Trial
	Events []tuner.Event
},
) {
	t.Helper()
	var err error
	if h.Study, err = s.Study(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	for more := true; more; {
		var page []study.Trial
		if page, more, err = s.Trials(t.Context(), "s", tuner.Filter{First: len(h.Trials), Limit: 100}); err != nil {
			t.Fatal(err)
		}
		h.Trials = append(h.Trials, page...)
	}
	if h.Events, err = watched(t.Context(), s, "s", 0, int(h.Study.Position)); err != nil {
		t.Fatal(err)
	}
	return h
}

// A deletion whose answer is lost still deletes, and its repetition does not delete a new
// study of the same name.
func TestLostDeletion(t *testing.T) {
	t.Parallel() // it waits more than it computes
	service := &lossy{Service: wiretest.New(t), l: &cuttable{Listener: listen(t)}, chance: rand.New(rand.NewPCG(1, 2))}
	serve(t, service, server.Options{Limits: free}, service.l)
	c := dial(t, service.l.Addr().String(), client.Options{Plaintext: true, RetryFor: time.Hour})
	for range 60 {
		if _, err := c.CreateStudy(t.Context(), "s", study.Create{Spec: spec(t)}); err != nil {
			t.Fatal(err)
		}
		if err := c.DeleteStudy(t.Context(), "s"); err != nil {
			t.Fatal(err)
		}
	}
	if service.lost.Load() == 0 {
		t.Error("no answer was lost: this was no test")
	}
}

// TestWatchResumes cuts the connection after every few events. Each event is seen once, in
// order.
func TestWatchResumes(t *testing.T) {
	service := wiretest.New(t)
	l := &cuttable{Listener: listen(t)}
	serve(t, service, server.Options{Limits: free}, l)
	c := dial(t, l.Addr().String(), client.Options{Plaintext: true, RetryFor: time.Hour})
	if _, err := service.CreateStudy(t.Context(), "s", study.Create{Spec: spec(t)}); err != nil {
		t.Fatal(err)
	}
	const events = 60
	next := study.Position(1)
	for h, err := range c.Watch(t.Context(), "s", tuner.From{After: 0}) {
		if err != nil {
			t.Fatal(err)
		}
		if h.Position != next {
			t.Fatalf("event %d came where %d was due", h.Position, next)
		}
		if next++; next > events {
			break
		}
		if next%7 == 0 {
			l.cut()
		}
		if _, err := service.Enqueue(t.Context(), "s", study.Enqueue{Config: config(0, 1)}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var last error
	for _, err := range c.Watch(ctx, "s", tuner.From{After: 0}) {
		cancel()
		last = err
	}
	if !errors.Is(last, context.Canceled) {
		t.Errorf("a cancelled watch ended with %v", last)
	}
}

// TestWatchEndsWithItsStudy deletes a study while its watch is cut, and creates another one
// of its name that is as long, shorter or longer. The watch says so at once, and yields no
// event of the other.
func TestWatchEndsWithItsStudy(t *testing.T) {
	for _, length := range []int{0, 2, 9} {
		service := wiretest.New(t)
		l := &cuttable{Listener: listen(t)}
		serve(t, service, server.Options{Limits: free}, l)
		c := dial(t, l.Addr().String(), client.Options{Plaintext: true, RetryFor: time.Hour})
		fill := func(n int) {
			if _, err := service.CreateStudy(t.Context(), "s", study.Create{Spec: spec(t)}); err != nil {
				t.Fatal(err)
			}
			for range n {
				if _, err := service.Enqueue(t.Context(), "s", study.Enqueue{Config: config(0, 1)}); err != nil {
					t.Fatal(err)
				}
			}
		}
		fill(2)
		events := 0
		var last error
		for _, err := range c.Watch(t.Context(), "s", tuner.From{}) {
			if last = err; err != nil {
				break
			}
			if events++; events == 3 {
				l.cut()
				if err := service.DeleteStudy(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
				fill(length)
			}
		}
		if events != 3 || tuner.CodeOf(last) != tuner.NotFound || !strings.Contains(last.Error(), "watch that from position 0") {
			t.Errorf("with %d events in the other study: %d events, then %v", length, events, last)
		}
		for _, err := range c.Watch(t.Context(), "s", tuner.From{After: 100}) {
			if tuner.CodeOf(err) != tuner.Invalid || !strings.Contains(err.Error(), "after = 100: is past the end of the log") {
				t.Errorf("past the end: %v", err)
			}
			break
		}
	}
}

// TestWatchStudiesResumes cuts the watch of all studies while they change. In the end its
// client knows all of them as they are.
func TestWatchStudiesResumes(t *testing.T) {
	service := wiretest.New(t)
	l := &cuttable{Listener: listen(t)}
	serve(t, service, server.Options{Limits: free}, l)
	c := dial(t, l.Addr().String(), client.Options{Plaintext: true, RetryFor: time.Hour})
	change := func(round int) {
		name := fmt.Sprint("s", round%3)
		if round >= 3 {
			if err := service.DeleteStudy(t.Context(), name); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := service.CreateStudy(t.Context(), name, study.Create{Spec: spec(t)}); err != nil {
			t.Fatal(err)
		}
		if _, err := service.Enqueue(t.Context(), "s0", study.Enqueue{Config: config(0, 1)}); err != nil {
			t.Fatal(err)
		}
	}
	known := make(map[store.StudyID]study.Position)
	round, end := 0, time.Now().Add(time.Minute)
	for news, err := range c.WatchStudies(t.Context()) {
		if err != nil || time.Now().After(end) {
			t.Fatalf("after %d rounds the client knows %v: %v", round, known, err)
		}
		for _, s := range news.Studies {
			if s.Position < known[s.ID] {
				t.Errorf("study %d went back to %d", s.ID, s.Position)
			}
			known[s.ID] = s.Position
		}
		for _, id := range news.Deleted {
			if _, had := known[id]; !had {
				t.Errorf("no message told that study %d is gone", id)
			}
			delete(known, id)
		}
		if round < 9 {
			l.cut()
			change(round)
			round++
			continue
		}
		there, _, err := service.Studies(t.Context(), "", 0)
		if err != nil {
			t.Fatal(err)
		}
		now := make(map[store.StudyID]study.Position)
		for _, s := range there {
			now[s.ID] = s.Position
		}
		if maps.Equal(known, now) {
			return
		}
	}
}

// Without a server the call has no effect. With a server that takes requests and never
// answers, the outcome is unknown.
func TestServerAway(t *testing.T) {
	l := listen(t)
	address := l.Addr().String()
	l.Close()
	c := dial(t, address, client.Options{Plaintext: true, RetryFor: 20 * time.Millisecond})
	if _, err := c.Tell(t.Context(), "s", study.Tell{Outcome: completed(1)}); tuner.CodeOf(err) != tuner.Unavailable {
		t.Errorf("without a server the code is %q of %v", tuner.CodeOf(err), err)
	}
	for _, err := range c.Watch(t.Context(), "s", tuner.From{After: 0}) {
		if tuner.CodeOf(err) != tuner.Unavailable {
			t.Errorf("watching without a server: %v", err)
		}
	}

	silent := &silent{Service: wiretest.New(t), asked: make(chan struct{}, 10), l: &cuttable{Listener: listen(t)}}
	serve(t, silent, server.Options{Limits: free}, silent.l)
	c = dial(t, silent.l.Addr().String(), client.Options{Plaintext: true, RetryFor: -1})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-silent.asked; cancel() }()
	_, err := c.Tell(ctx, "s", study.Tell{})
	if tuner.CodeOf(err) != tuner.Unknown || !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled tell that was sent: %q of %v", tuner.CodeOf(err), err)
	}
	go func() { <-silent.asked; silent.l.cut() }()
	if _, err = c.Tell(t.Context(), "s", study.Tell{}); tuner.CodeOf(err) != tuner.Unknown {
		t.Errorf("a tell whose connection broke: %q of %v", tuner.CodeOf(err), err)
	}
	ctx, cancel = context.WithCancel(t.Context())
	go func() { <-silent.asked; cancel() }()
	if _, err = c.Study(ctx, "s"); !errors.Is(err, context.Canceled) || tuner.CodeOf(err) != tuner.Cancelled {
		t.Errorf("a cancelled look: %q of %v", tuner.CodeOf(err), err)
	}
}

// silent never answers.
type silent struct {
	tuner.Service
	asked chan struct{}
	l     *cuttable
}

func (s *silent) Tell(ctx context.Context, _ string, _ study.Tell) (tuner.Told, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return tuner.Told{}, ctx.Err()
}

func (s *silent) Study(ctx context.Context, _ string) (tuner.Study, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return tuner.Study{}, ctx.Err()
}

// unsure sometimes reports that the outcome of a call is unknown.
type unsure struct {
	tuner.Service
	times atomic.Int64
}

func (s *unsure) Tell(ctx context.Context, name string, c study.Tell) (tuner.Told, error) {
	told, err := s.Service.Tell(ctx, name, c)
	if s.times.Add(-1) >= 0 {
		return tuner.Told{}, store.ErrUnknownOutcome
	}
	return told, err
}

// The client sends the same request again.
func TestUnknownOutcome(t *testing.T) {
	t.Parallel() // it waits more than it computes
	service := &unsure{Service: wiretest.New(t)}
	l := listen(t)
	serve(t, service, server.Options{Limits: free}, l)
	if _, err := service.CreateStudy(t.Context(), "s", study.Create{Spec: spec(t)}); err != nil {
		t.Fatal(err)
	}
	if _, err := service.Ask(t.Context(), "s", study.Ask{Count: 2}); err != nil {
		t.Fatal(err)
	}
	service.times.Store(3)
	patient := dial(t, l.Addr().String(), client.Options{Plaintext: true, RetryFor: time.Hour})
	if _, err := patient.Tell(t.Context(), "s", study.Tell{Outcome: completed(1)}); err != nil {
		t.Errorf("a patient tell: %v", err)
	}
	service.times.Store(1)
	hasty := dial(t, l.Addr().String(), client.Options{Plaintext: true, RetryFor: -1})
	if _, err := hasty.Tell(t.Context(), "s", study.Tell{Trial: 1, Outcome: completed(1)}); tuner.CodeOf(err) != tuner.Unknown {
		t.Errorf("a hasty tell: %q of %v", tuner.CodeOf(err), err)
	}
}

// A client that is too fast waits for the time that the server gives.
func TestRateIsWaitedOut(t *testing.T) {
	l := listen(t)
	path, token := tokenFile(t, server.Scope{Role: server.RoleAdmin})
	serve(t, wiretest.New(t), server.Options{TokenFile: path, Limits: server.Limits{Rate: 100, Burst: 5}}, l)
	patient := dial(t, l.Addr().String(), client.Options{Plaintext: true, Token: token, RetryFor: time.Hour})
	for range 20 {
		if _, _, err := patient.Studies(t.Context(), "", 0); err != nil {
			t.Fatal(err)
		}
	}
	hasty := dial(t, l.Addr().String(), client.Options{Plaintext: true, Token: token, RetryFor: -1})
	var err error
	for i := 0; i < 1000 && err == nil; i++ {
		_, _, err = hasty.Studies(t.Context(), "", 0)
	}
	if tuner.CodeOf(err) != tuner.Exhausted {
		t.Errorf("a thousand calls in a row: %v", err)
	}
}

// TestShutdownUnderLoad restarts the server while workers work. None of them sees an error,
// and no acknowledged result is lost.
func TestShutdownUnderLoad(t *testing.T) {
	t.Parallel() // it waits more than it computes
	const workers, restarts = 8, 5
	service := wiretest.New(t)
	if _, err := service.CreateStudy(t.Context(), "s", study.Create{Spec: spec(t)}); err != nil {
		t.Fatal(err)
	}
	l := listen(t)
	address := l.Addr().String()
	stop := serve(t, service, server.Options{Limits: free}, l)
	c := dial(t, address, client.Options{Plaintext: true, RetryFor: time.Hour})
	var told atomic.Int64
	var group sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	errs := make(chan error, workers)
	for range workers {
		group.Go(func() {
			for ctx.Err() == nil {
				asked, err := c.Ask(t.Context(), "s", study.Ask{New: true})
				if err == nil {
					_, err = c.Tell(t.Context(), "s", study.Tell{Trial: asked.Trials[0].Number, Outcome: completed(1)})
				}
				if err != nil {
					errs <- err
					return
				}
				told.Add(1)
			}
		})
	}
	for range restarts {
		for before := told.Load(); told.Load() < before+50 && len(errs) == 0; {
			time.Sleep(time.Millisecond)
		}
		stop()
		again, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		stop = serve(t, service, server.Options{Limits: free}, again)
	}
	cancel()
	group.Wait()
	close(errs)
	for err := range errs {
		t.Errorf("a worker saw %v", err)
	}
	s, err := service.Study(t.Context(), "s")
	if err != nil || s.Counts[study.Completed] != int(told.Load()) || s.Trials != int(told.Load()) {
		t.Errorf("%d tells were acknowledged, %d trials of %d are completed (%v)", told.Load(), s.Counts[study.Completed], s.Trials, err)
	}
}
