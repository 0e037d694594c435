package bo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/space/spacetest"
)

// fake returns the peer of testdata that behaves as named.
func fake(t *testing.T, name string) peerProgram {
	text, err := os.ReadFile(filepath.Join("testdata", "peer.py"))
	if err != nil {
		t.Fatal(err)
	}
	return peerProgram{python: python(t), script: string(text), name: name}
}

// adapter returns a peer of the adapter itself. The peer python-random needs no package.
func adapter(t *testing.T, name string) peerProgram {
	return peerProgram{python: python(t), script: script, name: name}
}

func python(t *testing.T) string {
	path, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("there is no python3 to talk to: ", err)
	}
	return path
}

func unit(t *testing.T) *space.Space {
	s, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func startPeer(t *testing.T, p peerProgram, s *space.Space, seed uint64, trials int) *peerProcess {
	t.Helper()
	q, err := p.start(t.Context(), Setup{Space: s, Seed: seed, Trials: trials})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
	return q
}

func TestPeerConversation(t *testing.T) {
	p := startPeer(t, fake(t, "good"), unit(t), 7, 20)
	if p.version != "test 1.0" {
		t.Errorf("version %q", p.version)
	}
	ask := func(x, seconds float64) {
		t.Helper()
		c, err := p.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := c.Get("x"); got != space.Float(x) || p.AskSeconds() != seconds {
			t.Errorf("x=%v after %v s, want %v after %v s", got, p.AskSeconds(), x, seconds)
		}
	}
	ask(0.07, 20)
	for _, told := range []struct {
		value float64
		ok    bool
		want  float64
	}{{0, true, 0}, {1e-300, true, 1e-300}, {0.5, false, 0.125}, {math.NaN(), true, 0.125}, {math.Inf(1), true, 0.125}} {
		c := space.NewConfig(space.Assignment{Name: "x", Value: space.Float(0.75)})
		if err := p.Tell(t.Context(), c, told.value, told.ok); err != nil {
			t.Fatal(err)
		}
		ask(told.want, 0.75)
	}
	// On a problem with limits, the value and the metrics of a trial beyond a limit are told.
	c := space.NewConfig(space.Assignment{Name: "x", Value: space.Float(0.75)})
	for _, told := range []struct {
		metrics       []float64
		want, seconds float64
	}{{[]float64{0.25, 0}, 0.25, 3}, {[]float64{-1, 0}, 0, 3}, {[]float64{math.Inf(1), 0}, 0.125, 0.75}} {
		if err := p.TellLimited(t.Context(), c, 3, told.metrics); err != nil {
			t.Fatal(err)
		}
		ask(told.want, told.seconds)
	}
	for _, told := range []struct {
		values, metrics []float64
		want, seconds   float64
	}{{[]float64{3, 0.25}, nil, 0.25, 3}, {[]float64{4, 0.25}, []float64{0, 1}, 0.5, 4}, {nil, nil, 0.125, 0.75}} {
		if err := p.TellSeveral(t.Context(), c, told.values, told.metrics); err != nil {
			t.Fatal(err)
		}
		ask(told.want, told.seconds)
	}
}

func TestPeerErrors(t *testing.T) {
	racetest.Alone(t)
	for name, want := range map[string][]string{
		"dies":    {"ask", "ended without an answer", "exit status 3", "the last words"},
		"refuses": {"ask", "ValueError: no", "Traceback …"},
		"babbles": {"ask", "no JSON"},
		"strays":  {"ask", "not in the space", "2.5"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := fake(t, name).start(t.Context(), Setup{Space: unit(t), Seed: 1, Trials: 1})
			if err != nil {
				t.Fatal(err)
			}
			_, err = p.Ask(t.Context())
			var fault *PeerError
			if !errors.As(err, &fault) || fault.Peer != name {
				t.Fatalf("error %v", err)
			}
			for _, part := range want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
			if len(fault.Stderr) > tailBytes {
				t.Errorf("%d bytes of stderr", len(fault.Stderr))
			}
			if _, err := p.Ask(t.Context()); !errors.As(err, &fault) {
				t.Errorf("a dead peer answers with error %v", err)
			}
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestPeerCannotStart(t *testing.T) {
	racetest.Alone(t)
	_, err := fake(t, "unsupported").start(t.Context(), Setup{Space: unit(t), Seed: 1, Trials: 1})
	var unsupported *UnsupportedError
	if !errors.As(err, &unsupported) || unsupported.Reason != "colours" {
		t.Errorf("error %v", err)
	}
	if _, err = fake(t, "missing").start(t.Context(), Setup{Space: unit(t), Seed: 1, Trials: 1}); !errors.As(err, new(*MissingError)) {
		t.Errorf("missing package: error %v", err)
	}
	if _, err = adapter(t, "python-random").start(t.Context(), Setup{Space: unit(t), Seed: 1, Trials: 1, Objectives: 2}); !errors.As(err, &unsupported) || unsupported.Reason != "several objectives" {
		t.Errorf("several objectives: error %v", err)
	}
	var fault *PeerError
	p := adapter(t, "no-such-peer")
	if _, err = p.start(t.Context(), Setup{Space: unit(t), Seed: 1, Trials: 1}); !errors.As(err, &fault) || !strings.Contains(err.Error(), "usage") {
		t.Errorf("unknown peer: error %v", err)
	}
	var missing *MissingError
	p.python = filepath.Join(t.TempDir(), "python")
	if _, err = p.start(t.Context(), Setup{Space: unit(t), Seed: 1, Trials: 1}); !errors.As(err, &missing) {
		t.Errorf("no interpreter: error %v", err)
	}
}

func TestPeerIsEnded(t *testing.T) {
	p, err := fake(t, "sleeps").start(t.Context(), Setup{Space: unit(t), Seed: 1, Trials: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("Ctrl-C")
	time.AfterFunc(50*time.Millisecond, func() { cancel(why) })
	if _, err := p.Ask(ctx); !errors.Is(err, why) {
		t.Errorf("error %v", err)
	}
	if p.cmd.ProcessState == nil {
		t.Error("the process still runs")
	}

	if p, err = fake(t, "sleeps").start(t.Context(), Setup{Space: unit(t), Seed: 1, Trials: 1}); err != nil {
		t.Fatal(err)
	}
	p.program.patience = 50 * time.Millisecond
	var fault *PeerError
	if _, err := p.Ask(t.Context()); !errors.As(err, &fault) || !errors.Is(err, errImpatient) {
		t.Errorf("error %v", err)
	}
}

func TestPeerWriteFails(t *testing.T) {
	p, err := fake(t, "good").start(t.Context(), Setup{Space: unit(t), Seed: 1, Trials: 1})
	if err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Process.Kill()
	_, _ = io.Copy(io.Discard, p.out) // until it is dead
	var fault *PeerError
	if _, err := p.Ask(t.Context()); !errors.As(err, &fault) {
		t.Errorf("error %v", err)
	}
}

// TestAdapterSpaces asks the adapter for configurations of random spaces, each of which
// must be valid, and tells it some of ours.
func TestAdapterSpaces(t *testing.T) {
	racetest.Alone(t)
	program := adapter(t, "python-random")
	for seed := range 6 {
		s := spacetest.Spaces(12).Example(seed)
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			p := startPeer(t, program, s, uint64(seed), 20)
			rng := rand.New(rand.NewPCG(uint64(seed), 1))
			for range 20 {
				c, err := p.Ask(t.Context())
				if err != nil {
					t.Fatalf("%v in %s", err, s.YAML())
				}
				if err := p.Tell(t.Context(), c, rng.NormFloat64(), rng.IntN(4) > 0); err != nil {
					t.Fatalf("%v: told %s in %s", err, c, s.YAML())
				}
				u := make([]float64, s.Dim())
				for i := range u {
					u[i] = rng.Float64()
				}
				if c, err = s.Decode(u); err != nil {
					t.Fatal(err)
				}
				if err := p.Tell(t.Context(), c, rng.NormFloat64(), true); err != nil {
					t.Fatalf("%v: told %s in %s", err, c, s.YAML())
				}
			}
		})
	}
}

// TestAdapterScales compares the adapter's scales with ours. Values that are uniform there
// have uniform coordinates here. The distance from uniform exceeds 2/√n with probability
// 7e-4 (Kolmogorov). The seed is fixed.
func TestAdapterScales(t *testing.T) {
	racetest.Alone(t)
	s, err := space.New(
		space.NewFloat("linear", -3, 5),
		space.NewFloat("log", 1e-5, 10).WithScale(space.Log),
		space.NewFloat("reverse", 0.1, 1000).WithScale(space.ReverseLog),
		space.NewInt("int", 3, 1000),
		space.NewInt("log int", 16, 4096).WithScale(space.Log),
		space.NewFloat("step", 0, 1).WithStep(space.Float(0.1)),
		space.NewInt("int step", 32, 256).WithStep(space.Int(32)),
		space.NewOrdinal("ordinal", space.String("s"), space.String("m"), space.String("l")),
		space.NewCategorical("categorical", space.Bool(true), space.Int(1), space.String("x"), space.Float(2)),
	)
	if err != nil {
		t.Fatal(err)
	}
	const n = 2000
	p := startPeer(t, adapter(t, "python-random"), s, 5, n)
	columns := make([][]float64, s.Dim())
	for range n {
		c, err := p.Ask(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		u := make([]float64, s.Dim())
		if err := s.Encode(c, u); err != nil {
			t.Fatal(err)
		}
		for i, x := range u {
			columns[i] = append(columns[i], x)
		}
	}
	for i, a := range s.Axes() {
		if d := distanceFromUniform(columns[i], a.Levels); d > 2/math.Sqrt(n) {
			t.Errorf("%s: distance %.3f from uniform", a.Parameter, d)
		}
	}
}

// distanceFromUniform returns Kolmogorov's distance. For few levels, where coordinates are
// the middles of equal cells, it is taken at the ends of the cells.
func distanceFromUniform(u []float64, levels uint64) float64 {
	slices.Sort(u)
	slack := 0.0
	if levels > 0 && levels < 100 {
		slack = 0.5 / float64(levels)
	}
	most := 0.0
	for i, x := range u {
		if i+1 < len(u) && u[i+1] == x {
			continue // the distribution jumps at the last of equal ones
		}
		most = max(most, math.Abs(float64(i+1)/float64(len(u))-(x+slack)))
	}
	return most
}
