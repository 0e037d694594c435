package wiretest_test

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/bkbtuner/bkb/internal/freeport"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/client"
	"github.com/bkbtuner/bkb/tuner/server"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/wire"
)

func TestMain(m *testing.M) {
	racetest.Waiting()
	goleak.VerifyTestMain(m)
}

// listen listens on a port of loopback that the test can have again when it is closed.
func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", freeport.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// serve runs a server until the test ends, or until stop is called.
func serve(t testing.TB, service tuner.Service, o server.Options, l net.Listener) (stop func()) {
	t.Helper()
	if o.DrainDelay == 0 {
		o.DrainDelay = time.Millisecond
	}
	s, err := server.New(service, o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

// dial makes a client that is closed when the test ends.
func dial(t testing.TB, address string, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Dial(address, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return c
}

// free are limits that do not affect a test.
var free = server.Limits{Rate: -1}

func plane(t testing.TB) *space.Space {
	t.Helper()
	s, warnings, err := space.Parse([]byte(`{"version":1,"parameters":{"x":{"type":"float","low":-1.0,"high":1.0},"n":{"type":"int","low":1,"high":9}}}`))
	if err != nil || len(warnings) > 0 {
		t.Fatal(err, warnings)
	}
	return s
}

func spec(t testing.TB) study.Spec {
	return study.Spec{Space: plane(t), Objectives: []study.Objective{{Name: "loss", Direction: study.Minimize}}, Seed: 1, Proposer: study.Component{Name: "sobol"}}
}

func completed(loss float64) study.Outcome {
	return study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{loss}}}}
}

func config(x float64, n int64) space.Config {
	return space.NewConfig(space.Assignment{Name: "x", Value: space.Float(x)}, space.Assignment{Name: "n", Value: space.Int(n)})
}

// tokenFile makes a file with one token.
func tokenFile(t testing.TB, scope server.Scope) (path string, token wire.Token) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "tokens.json")
	token, _, err := server.AddToken(path, scope, "test", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	return path, token
}
