package bo

import (
	"bytes"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/space"
)

// The smoke tier runs to the end, and is not run again. When it is run again by two
// workers, it gives the same results to the bit.
func TestSmoke(t *testing.T) {
	data := os.Getenv("BKB_DATA")
	c := &Comparison{Out: t.TempDir(), Data: data, Tier: Smoke, Optimisers: []string{"ours", "baseline"}}
	done, err := c.Execute(t.Context())
	if err != nil || len(done.Failed) > 0 || done.Ran == 0 || done.Had != 0 {
		t.Fatalf("%+v, %v", done, err)
	}
	t.Logf("%d runs; left out: %q", done.Ran, done.LeftOut)
	again, err := c.Execute(t.Context())
	if err != nil || again.Ran != 0 || again.Had != done.Ran {
		t.Fatalf("%+v, %v", again, err)
	}
	got, err := c.Report()
	if err != nil {
		t.Fatal(err)
	}
	if rows := len(got.Tables[0].Rows); rows < 2 {
		t.Errorf("%d rows of ranks", rows)
	}
	page, err := c.Page(got)
	if err != nil || !bytes.Contains(page, []byte("## Ranks\n")) || !bytes.Contains(page, []byte("| bkb |")) {
		t.Errorf("%s, %v", page, err)
	}
	before := trialsOf(t, c)
	if n, err := c.Forget(); err != nil || n != done.Ran {
		t.Fatalf("%d runs forgotten, %v", n, err)
	}
	c.Jobs = 2
	if done, err = c.Execute(t.Context()); err != nil || done.Ran != again.Had {
		t.Fatalf("%+v, %v", done, err)
	}
	if after := trialsOf(t, c); !slices.Equal(before, after) {
		t.Error("runs differ the second time")
	}
}

// trialsOf returns the trials in the runs of a directory, without times.
func trialsOf(t *testing.T, c *Comparison) []string {
	p, err := c.plan()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, j := range p.jobs() {
		r, err := readRun(c.Out, j.listed.Name, j.contestant.Name, j.seed)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		for i := range r.Trials {
			r.Trials[i].AskSeconds = 0
		}
		var b bytes.Buffer
		if r.Clock = ""; r.encode(&b) != nil {
			t.Fatal("cannot be encoded")
		}
		out = append(out, b.String())
	}
	return out
}

// An interrupted execution keeps complete runs only.
func TestInterrupted(t *testing.T) {
	c := &Comparison{Out: t.TempDir(), Tier: Smoke, Suites: []string{"classic"}, Optimisers: []string{"random"}, Seeds: 50}
	ctx, cancel := context.WithCancel(t.Context())
	c.Progress = func(p experiment.Progress) {
		if p.Done == 20 {
			cancel()
		}
	}
	done, err := c.Execute(ctx)
	if !errors.Is(err, context.Canceled) || done.Ran < 20 || done.Ran > 21 {
		t.Fatalf("%+v, %v", done, err)
	}
	files, err := filepath.Glob(filepath.Join(c.Out, "runs", "*", "*", "*"))
	if err != nil || len(files) != done.Ran {
		t.Fatalf("%d files of %d runs, %v", len(files), done.Ran, err)
	}
	if len(trialsOf(t, c)) != done.Ran {
		t.Error("not all can be read")
	}
}

func TestSelection(t *testing.T) {
	for _, c := range []struct {
		c    Comparison
		want string
	}{
		{Comparison{Tier: "huge"}, `tier "huge"`},
		{Comparison{Suites: []string{"clasic"}}, `suite "clasic"`},
		{Comparison{Problems: []string{"f99*"}}, `problem "f99*"`},
		{Comparison{Optimisers: []string{"tpe2"}}, `optimiser "tpe2"`},
		{Comparison{Seeds: -1}, "seeds is -1"},
		{Comparison{SkipSeeds: -1}, "skip-seeds is -1"},
		{Comparison{Jobs: -2}, "jobs is -2"},
	} {
		if _, err := c.c.Execute(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, not of %s", err, c.want)
		}
	}
	bold, err := Variant("bold", `{"width": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	p, err := (&Comparison{Tier: Smoke, Problems: []string{"classic/hartmann6", "bran*", "ackley*"}, Optimisers: []string{"baseline"}, Variants: []Contestant{bold}}).plan()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.suites {
		for _, l := range s.Problems {
			got = append(got, l.Name)
		}
	}
	for _, k := range p.contestants {
		got = append(got, k.Name)
	}
	// A pattern selects within the tier, a full name from all tiers.
	if want := []string{"classic/branin", "classic/hartmann6", "random", "sobol", "bold"}; !slices.Equal(got, want) {
		t.Errorf("%v, not %v", got, want)
	}
	for name, options := range map[string]string{"bkb": "{}", "a b": "{}", "../x": "{}", "x": `{"widht": 1}`} {
		if _, err := Variant(name, options); err == nil {
			t.Errorf("variant %s=%s is taken", name, options)
		}
	}
}

// The listed problems can be opened, and keep the contract of Problem.
func TestProblems(t *testing.T) {
	racetest.Alone(t)
	data := os.Getenv("BKB_DATA")
	if data == "" {
		data = filepath.Join("..", "..", "..", "..", "shared", "data")
	}
	names := make(map[string]bool)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, s := range Suites() {
		for _, l := range s.Problems {
			if names[l.Name] || !strings.HasPrefix(l.Name, s.Name+"/") || !slices.Contains(tiers, l.Tier) {
				t.Errorf("%s: listed twice, of no tier, or not named after its suite", l.Name)
			}
			names[l.Name] = true
			if l.Tier != Smoke {
				continue
			}
			p, err := l.Open(data)
			if missing := (*experiment.DataError)(nil); errors.As(err, &missing) {
				t.Logf("left out: %v", err)
				continue
			} else if err != nil {
				t.Fatal(err)
			}
			if p.Name() != l.Name || p.Suite() != s.Name || !(p.Best() < p.Median()) {
				t.Errorf("%s of %s, best %v, median %v", p.Name(), p.Suite(), p.Best(), p.Median())
			}
			u := make([]float64, p.Space().Dim())
			for range 200 {
				for i := range u {
					u[i] = rng.Float64()
				}
				c, err := p.Space().Decode(u)
				if err != nil {
					t.Fatal(err)
				}
				truth := p.True(c)
				if value, ok := p.Evaluate(c, rng); ok == math.IsInf(truth, 1) || ok && math.IsNaN(value) || truth < p.Best()-1e-9*math.Abs(p.Best()) {
					t.Fatalf("seed %d: %s at %s: %v (%v), true %v, best %v", seed, l.Name, c, value, ok, truth, p.Best())
				}
			}
		}
	}
}

// steep is a problem with known properties. It is x, and fails above a half.
type steep struct {
	space *space.Space
	noise float64
}

func (p steep) Name() string        { return "test/steep" }
func (p steep) Suite() string       { return "test" }
func (p steep) Space() *space.Space { return p.space }
func (p steep) Best() float64       { return 0 }
func (p steep) Median() float64     { return 0.25 }
func (p steep) True(c space.Config) float64 {
	v, _ := c.Get("x")
	x, _ := v.AsFloat()
	if x > 0.5 {
		return math.Inf(1)
	}
	return x
}

func (p steep) Evaluate(c space.Config, rng *rand.Rand) (float64, bool) {
	x := p.True(c)
	return x + p.noise*rng.NormFloat64(), !math.IsInf(x, 1)
}

// scripted asks for given points and records what it was told.
type scripted struct {
	space *space.Space
	x     []float64
	told  []string

	choice float64 // its recommendation
}

func (o *scripted) Recommend(context.Context) (space.Config, bool, error) {
	c, err := o.space.Decode([]float64{o.choice})
	return c, true, err
}

func (o *scripted) Ask(context.Context) (space.Config, error) {
	if len(o.x) == 0 {
		return space.Config{}, ErrEnded
	}
	c, err := o.space.Decode(o.x[:1])
	o.x = o.x[1:]
	return c, err
}

func (o *scripted) Tell(_ context.Context, c space.Config, value float64, ok bool) error {
	o.told = append(o.told, c.String())
	if !ok && value != 0 {
		return errors.New("a failure with a value")
	}
	return nil
}

func (o *scripted) Close() error { return nil }

// A run records the incumbent by its measured value, failures, and an early end. Its file
// has the same content.
func TestRunner(t *testing.T) {
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	for _, noise := range []float64{0, 0.3} {
		o := &scripted{space: sp, choice: 0.2, x: []float64{0.9, 0.4, 0.2, 0.7, 0.3, 0.1}}
		r := &runner{run: Run{Problem: "test/steep", Optimiser: "scripted", Seed: 3, Best: 0, Median: 0.25, Clock: "wall", Version: "a  b"}, problem: steep{sp, noise}, optimiser: o}
		if err := r.do(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		run := &r.run
		if len(run.Trials) != 6 || len(o.told) != 6 || run.Ended == "" || run.Trials[0].OK || !run.Trials[1].OK {
			t.Fatalf("%+v", run)
		}
		if !math.IsInf(run.regret(1, measured), 1) || !math.IsInf(run.regret(0, measured), 1) || math.Abs(run.regret(2, measured)-1.6) > 1e-9 {
			t.Errorf("regrets %v, %v, %v", run.regret(0, measured), run.regret(1, measured), run.regret(2, measured))
		}
		least, at := math.Inf(1), -1
		for i, trial := range run.Trials {
			if trial.OK && trial.Value < least {
				least, at = trial.Value, i
			}
			if at >= 0 && trial.BestTrue != run.Trials[at].True {
				t.Errorf("trial %d: incumbent %v, not %v", i, trial.BestTrue, run.Trials[at].True)
			}
		}
		if got := []float64{run.regret(5, recommended), run.regret(4, recommended), run.regret(6, found), run.regret(3, found)}; !slices.Equal(got, []float64{0.8, run.regret(4, measured), 0.4, 0.8}) {
			t.Errorf("regrets of other choices: %v", got)
		}
		if run.regret(1000, measured) != run.Trials[at].True/0.25 {
			t.Errorf("regret at the end %v", run.regret(1000, measured))
		}
		var b bytes.Buffer
		if err := run.encode(&b); err != nil {
			t.Fatal(err)
		}
		back, err := decodeRun(b.String())
		if err != nil {
			t.Fatal(err)
		}
		var twice bytes.Buffer
		if err := back.encode(&twice); err != nil || twice.String() != b.String() {
			t.Errorf("read back as\n%s\nnot\n%s", twice.String(), b.String())
		}
	}
}

// Latency reports on every contestant and size, and keeps its result for the page.
func TestLatency(t *testing.T) {
	racetest.Alone(t)
	c := &Comparison{Out: t.TempDir(), Optimisers: []string{"bkb", "random"}}
	r, err := c.Latency(t.Context(), []int{20, 40}, 15)
	if err != nil {
		t.Fatal(err)
	}
	table := r.Tables[0]
	if len(table.Rows) != 4 {
		t.Fatalf("%v", table.Rows)
	}
	p50, p99, m := table.Float("p50"), table.Float("p99"), table.Float("m")
	for i, n := range table.Float("trials") {
		ours := table.Rows[i][0] == "bkb"
		// All points of a small study are inducing points, except those that coincide.
		if !(p50[i] > 0 && p99[i] >= p50[i]) || ours && !(m[i] > n/2 && m[i] <= n+100) || !ours && !math.IsNaN(m[i]) {
			t.Errorf("%v", table.Rows[i])
		}
	}
	page, err := c.Page(&report.Result{})
	if err != nil || !bytes.Contains(page, []byte("## Latency\n")) {
		t.Errorf("%s, %v", page, err)
	}
	for _, bad := range []struct {
		sizes []int
		asks  int
	}{{[]int{3}, 0}, {[]int{100}, 1}, {nil, -1}} {
		var value *experiment.ValueError
		if _, err := c.Latency(t.Context(), bad.sizes, bad.asks); !errors.As(err, &value) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// Invalid files are refused by name.
func TestDamagedFile(t *testing.T) {
	c := &Comparison{Out: t.TempDir(), Tier: Smoke, Suites: []string{"classic"}, Optimisers: []string{"random"}, Seeds: 1}
	if _, err := c.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	path := runPath(c.Out, "classic/branin", "random", 1)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "hello", string(text[:bytes.Index(text, []byte("\n5,"))+3]), strings.Replace(string(text), "seed=1", "seed=2", 1), strings.Replace(string(text), "median=", "median=-", 1)} {
		if err := os.WriteFile(path, []byte(bad), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := c.Execute(t.Context())
		if file := (*FileError)(nil); !errors.As(err, &file) || file.Path != path {
			t.Errorf("%.20q: %v", bad, err)
		}
	}
}

// Noise is the same for all optimisers that ask for the same configurations, and differs
// with another seed. The initial setup is the same for all of them, and differs for every
// problem and seed.
func TestSameForAll(t *testing.T) {
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	values := func(name string, seed uint64) (out []float64) {
		o := &scripted{space: sp, choice: 0.2, x: []float64{0.4, 0.2, 0.9, 0.3}}
		r := &runner{run: Run{Problem: "test/steep", Optimiser: name, Version: name, Seed: seed, Median: 0.25}, problem: steep{sp, 0.3}, optimiser: o}
		if err := r.do(t.Context(), 10); err != nil {
			t.Fatal(err)
		}
		for _, trial := range r.run.Trials {
			if trial.OK {
				out = append(out, trial.Value)
			}
		}
		return out
	}
	if a, b, c := values("a", 1), values("b", 1), values("a", 2); !slices.Equal(a, b) || slices.Equal(a, c) || len(a) != 3 {
		t.Errorf("measured %v and %v, with another seed %v", a, b, c)
	}
	var setups []Setup
	contestant := func(name string) Contestant {
		return Contestant{
			Name: name, Kind: Peer,
			New: func(_ context.Context, s Setup) (Optimiser, error) {
				setups = append(setups, s)
				return &scripted{space: s.Space}, nil
			},
			Version: func(context.Context, Setup) (string, error) { return name, nil },
		}
	}
	c := &Comparison{
		Out: t.TempDir(), Tier: Smoke, Suites: []string{"classic", "bbob"}, Optimisers: []string{"sobol"}, Seeds: 2, Trials: 3,
		Variants: []Contestant{contestant("one"), contestant("two")},
	}
	if _, err := c.Execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	seeds := make(map[uint64]int)
	for _, s := range setups {
		seeds[s.Seed]++
		if s.Trials != 3 || s.Python != "" {
			t.Errorf("%+v", s)
		}
	}
	if len(setups) != 2*len(seeds) || len(seeds) != 2*3 {
		t.Errorf("%d setups with %d seeds", len(setups), len(seeds))
	}
	for seed, n := range seeds {
		if n != 2 {
			t.Errorf("seed %d for %d of 2 optimisers", seed, n)
		}
	}
}
