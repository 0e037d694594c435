package wiretest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire/wiretest"
)

// adds returns n trials to add, in the order of their costs.
func adds(n int) (commands []study.Command) {
	for i := range n {
		o := completed(float64(i))
		o.Cost = float64(i)
		commands = append(commands, study.Add{RequestID: fmt.Sprint("add ", i), Config: config(0.5, 1), Outcome: o})
	}
	return commands
}

// inOrder returns how many of the adds are stored. They must be the first ones, each once
// and in order.
func inOrder(t *testing.T, s tuner.Service) int {
	t.Helper()
	trials, _, err := s.Trials(t.Context(), "s", tuner.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for i, trial := range trials {
		if trial.Outcome.Cost != float64(i) {
			t.Fatalf("trial %d is the add %g", i, trial.Outcome.Cost)
		}
	}
	return len(trials)
}

// counted is a service that counts the calls of AddAll, and whose connections break before
// some of the answers are sent.
type counted struct {
	tuner.Service
	calls atomic.Int64
	cut   func(call int64)
}

func newCounted(t *testing.T) *counted {
	t.Helper()
	tn := engine.Open(memory.New(), engine.Options{})
	t.Cleanup(func() { tn.Close() })
	if _, err := tn.CreateStudy(t.Context(), "s", study.Create{Spec: spec(t)}); err != nil {
		t.Fatal(err)
	}
	return &counted{Service: tn, cut: func(int64) {}}
}

func (c *counted) AddAll(ctx context.Context, name string, commands []study.Command) ([]int, error) {
	defer func() { c.cut(c.calls.Add(1)) }()
	return c.Service.AddAll(ctx, name, commands)
}

// Trials that do not fit into one message are sent in several.
func TestAddAllInMessages(t *testing.T) {
	service, l := newCounted(t), listen(t)
	serve(t, service, server.Options{Limits: free}, l)
	for most, want := range map[int]int64{0: 1, 8 << 10: 7} {
		service.calls.Store(0)
		c := dial(t, l.Addr().String(), client.Options{Plaintext: true, RetryFor: -1, MaxSendBytes: most})
		numbers, err := c.AddAll(t.Context(), "s", adds(400))
		if err != nil || len(numbers) != 400 || numbers[399] != 399 {
			t.Fatalf("%d numbers, %v", len(numbers), err)
		}
		if got := service.calls.Load(); want == 1 && got != 1 || want > 1 && (got < want-2 || got > want+2) {
			t.Errorf("%d calls where a message has %d bytes, want about %d", got, most, want)
		}
		if n := inOrder(t, service); n != 400 {
			t.Errorf("%d trials", n)
		}
	}
	// A trial that fits into no message is named, and those before it are stored.
	commands := adds(410)
	large := commands[405].(study.Add)
	large.Attributes = study.Attributes{"log": strings.Repeat("x", 9<<10)}
	commands[405] = large
	c := dial(t, l.Addr().String(), client.Options{Plaintext: true, RetryFor: -1, MaxSendBytes: 8 << 10})
	_, err := c.AddAll(t.Context(), "s", commands)
	if at := (*tuner.CommandError)(nil); !errors.As(err, &at) || at.Index != 405 || !at.Refused() || !strings.Contains(err.Error(), "must be at most 8064 bytes as a message; shorten") {
		t.Errorf("too large: %v", err)
	}
	if n := inOrder(t, service); n != 405 {
		t.Errorf("%d trials before one that is too large, want 405", n)
	}
}

// After a connection breaks in the middle, at least as many of the first trials are stored
// as the error says. The same call again continues, and in the end each trial is stored
// once. A patient client repeats the call itself.
func TestAddAllBroken(t *testing.T) {
	for what, o := range map[string]client.Options{
		"hasty":   {Plaintext: true, RetryFor: -1, MaxSendBytes: 4 << 10},
		"patient": {Plaintext: true, MaxSendBytes: 4 << 10},
	} {
		t.Run(what, func(t *testing.T) {
			service := newCounted(t)
			l := &cuttable{Listener: listen(t)}
			service.cut = func(call int64) {
				if call%3 == 0 && call < 10 { // a complete attempt takes six calls
					l.cut()
				}
			}
			serve(t, service, server.Options{Limits: free}, l)
			c := dial(t, l.Addr().String(), o)
			broken := 0
			for {
				numbers, err := c.AddAll(t.Context(), "s", adds(200))
				if err == nil {
					if len(numbers) != 200 {
						t.Errorf("%d numbers", len(numbers))
					}
					break
				}
				if broken++; broken > 20 {
					t.Fatalf("still broken: %v", err)
				}
				done := 0
				if at := (*tuner.CommandError)(nil); errors.As(err, &at) {
					done = at.Index
				}
				if code := tuner.CodeOf(err); code != tuner.Unknown && code != tuner.Unavailable || inOrder(t, service) < done {
					t.Fatalf("%d trials are there after %q of %v", inOrder(t, service), code, err)
				}
			}
			if n := inOrder(t, service); n != 200 || (broken > 0) != (what == "hasty") {
				t.Errorf("%d trials after %d breaks", n, broken)
			}
		})
	}
}

// Over the wire too, a missing study is not found, and a closed client is closed.
func TestAddAllNowhere(t *testing.T) {
	l := listen(t)
	serve(t, wiretest.New(t), server.Options{Limits: free}, l)
	c := dial(t, l.Addr().String(), client.Options{Plaintext: true, RetryFor: -1})
	for _, name := range []string{"none", "a/b"} {
		if _, err := c.AddAll(t.Context(), name, adds(2)); tuner.CodeOf(err) != tuner.NotFound {
			t.Errorf("of study %q: %v", name, err)
		}
	}
	c.Close()
	if _, err := c.AddAll(t.Context(), "s", adds(2)); !errors.Is(err, store.ErrClosed) {
		t.Errorf("of a closed client: %v", err)
	}
}

// BenchmarkAddAll compares adding trials at once and one after another, over gRPC on
// loopback to a store on disk.
func BenchmarkAddAll(b *testing.B) {
	c := whole(b, 1, nil)[0]
	var single, many time.Duration
	trials := 0
	for b.Loop() {
		for _, at := range []struct {
			once bool
			took *time.Duration
		}{{false, &single}, {true, &many}} {
			var commands []study.Command
			for range 200 {
				config := space.NewConfig(space.Assignment{Name: "lr", Value: space.Float(0.5)}, space.Assignment{Name: "batch", Value: space.Int(32)},
					space.Assignment{Name: "optimizer", Value: space.String("sgd")})
				commands = append(commands, study.Add{RequestID: fmt.Sprint(trials), Config: config, Outcome: completed(1)})
				trials++
			}
			start := time.Now()
			size := 1
			if at.once {
				size = len(commands)
			}
			for part := range slices.Chunk(commands, size) {
				if _, err := c.AddAll(b.Context(), "s", part); err != nil {
					b.Fatal(err)
				}
			}
			*at.took += time.Since(start)
		}
	}
	b.ReportMetric(many.Seconds()/float64(trials/2)*1e6, "µs/trial")
	b.ReportMetric(single.Seconds()/many.Seconds(), "one-by-one/at-once")
}
