package propose

import (
	"bytes"
	"compress/gzip"
	"context"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

var update = flag.String("update", "", "write the golden suggestions to this file")

// goldenPaths are the numeric paths that make the golden suggestions. On portable arithmetic
// another suggestion may be the best.
var goldenPaths = []string{"avx2", "avx512"}

// TestGoldenModels makes studies anew whose model events and suggestions were recorded when the
// events got their version. Each must be as recorded, to the last digit, so that the log of a
// study explains its suggestions also after an upgrade. A change that alters them needs a new
// version of model events, once a version has been released.
func TestGoldenModels(t *testing.T) {
	if path := simd.For[float64]().Path; !slices.Contains(goldenPaths, path) {
		t.Skipf("these tests compute by %s; golden suggestions are made by one of %v", path, goldenPaths)
	}
	var text bytes.Buffer
	for _, g := range goldens {
		g.run(t, &text)
	}
	if *update != "" {
		var packed bytes.Buffer
		z, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if _, err := z.Write(text.Bytes()); err != nil {
			t.Fatal(err)
		}
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(*update, packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	f, err := os.Open("testdata/model1.txt.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	recorded, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	want, got := strings.Split(string(recorded), "\n"), strings.Split(text.String(), "\n")
	for i := range min(len(want), len(got)) {
		if want[i] != got[i] {
			t.Fatalf("line %d was recorded as\n%.400s\nand is\n%.400s", i+1, want[i], got[i])
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d lines, want %d", len(got), len(want))
	}
}

// golden is a study of a golden file.
type golden struct {
	name, space, options string
	objectives           int
	n, running           int // trials, and how many run at once
	outcome              func(u []float64, noise float64) study.Outcome
	reports              bool
}

// value returns an outcome of some metrics.
func value(metrics ...float64) study.Outcome {
	o := study.Outcome{State: study.Completed}
	for i, v := range metrics {
		o.Metrics = append(o.Metrics, study.Metric{Name: string(rune('a' + i)), Values: []float64{v}})
	}
	return o
}

func goldenBowl(u []float64) float64 {
	sum := 0.0
	for i, v := range u {
		sum += float64(i+1) * (v - 0.3) * (v - 0.3)
	}
	return sum
}

var crashed = study.Outcome{State: study.Failed, Reason: study.FailedCrash}

var goldens = []golden{
	{
		name: "quadratics", space: `{"v": {"type": "float", "low": 0, "high": 1}, "w": {"type": "float", "low": 0, "high": 1}, "x": {"type": "float", "low": 0, "high": 1}, "y": {"type": "float", "low": 0, "high": 1}, "z": {"type": "float", "low": 1, "high": 1000, "scale": "log"}}`,
		objectives: 1, n: 45, running: 1, outcome: func(u []float64, _ float64) study.Outcome { return value(goldenBowl(u) + u[0]*u[1]) },
	},
	{
		name: "mixed, failures and a limit, four workers", space: labtest.Spaces["mixed"], options: `{"constraints": {"b": {"max": 1.1}}}`,
		objectives: 1, n: 40, running: 4, outcome: func(u []float64, noise float64) study.Outcome {
			if u[0] > 0.7 {
				return crashed
			}
			return value(goldenBowl(u)+0.05*noise, u[1]+u[0])
		},
	},
	{
		name: "conditional, costs", space: labtest.Spaces["conditional"], options: `{"cost": "told"}`,
		objectives: 1, n: 30, running: 2, outcome: func(u []float64, noise float64) study.Outcome {
			o := value(goldenBowl(u) + 0.3*noise)
			o.Cost = 1 + u[0]
			return o
		},
	},
	{
		name: "finite, to the end", space: labtest.Spaces["finite"], options: `{"on_duplicate": "reuse"}`,
		objectives: 1, n: 40, running: 1, outcome: func(u []float64, _ float64) study.Outcome { return value(goldenBowl(u)) },
	},
	{
		name: "three objectives, binding cap", space: labtest.Square, options: `{"cap": 16, "on_duplicate": "replicate"}`,
		objectives: 3, n: 40, running: 2, outcome: func(u []float64, noise float64) study.Outcome {
			return value(goldenBowl(u)+0.1*noise, math.Cos(5*u[1]), u[0]-u[1])
		},
	},
	{
		name: "reports, pruned trials", space: labtest.Square, options: `{"max_step": 16}`,
		objectives: 1, n: 30, running: 2, reports: true, outcome: func(u []float64, noise float64) study.Outcome {
			o := value(goldenBowl(u) + 0.01*noise)
			if u[0] > 0.8 {
				o.State = study.Pruned
			}
			return o
		},
	},
	{
		name: "noise and outliers", space: labtest.Square,
		objectives: 1, n: 40, running: 1, outcome: func(u []float64, noise float64) study.Outcome {
			if noise > 2 {
				return value(1e30)
			}
			return value(goldenBowl(u) + 0.5*noise)
		},
	},
}

// run makes the study and writes its model events and suggestions.
func (g *golden) run(t *testing.T, w io.Writer) {
	t.Helper()
	spec := study.Spec{Space: labtest.Parse(t, g.space), Seed: 11, MaxRetries: 1}
	for i := range g.objectives {
		spec.Objectives = append(spec.Objectives, study.Objective{Name: string(rune('a' + i)), Direction: study.Minimize})
	}
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: g.options}, spec)
	rng := stream.New(5)
	fmt.Fprintln(w, g.name)
	for n := range g.n {
		a, due, err := p.(Modeler).Anchor(context.Background(), l.S)
		if err != nil {
			t.Fatal(err)
		}
		if due {
			l.Do(a)
			fmt.Fprintf(w, "%s\n", a.Model)
		}
		proposal, err := p.Propose(context.Background(), l.S, 1)
		if err != nil {
			fmt.Fprintln(w, err)
			break
		}
		s := proposal.Suggestions[0]
		fmt.Fprintln(w, n, s.Config, s.Phase, s.Seen, s.Mean, s.StdDev, s.Bound)
		l.Start(s)
		if at := n - g.running + 1; at >= 0 {
			u := l.Coordinates(at)
			o := g.outcome(u, rng.NormFloat64())
			if g.reports {
				l.Do(study.ReportValues{Trial: at, Reports: []study.Report{
					{Step: 3, Values: []study.NamedValue{{Name: "a", Value: goldenBowl(u) + 0.5}}},
					{Step: 8, Values: []study.NamedValue{{Name: "a", Value: goldenBowl(u) + 0.1}}},
				}})
			}
			l.Do(study.Tell{Trial: at, Outcome: o})
		}
	}
	best, err := recommend(p, l.S)
	fmt.Fprintln(w, best, err)
}
