package propose

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/space/spacetest"
	"github.com/bkbtuner/bkb/tuner/study"
	"pgregory.net/rapid"
)

// lab is a study that a proposer works on.
type lab struct{ *labtest.Lab }

func newLab(t labtest.Fataler, spec study.Spec) *lab {
	t.Helper()
	return &lab{labtest.New(t, spec)}
}

// ask proposes and starts n trials, and returns how many there were.
func (l *lab) ask(p Proposer, n int) int {
	l.T.Helper()
	proposal, err := p.Propose(context.Background(), l.S, n)
	if errors.Is(err, ErrExhausted) {
		return 0
	}
	if err != nil {
		l.T.Fatalf("propose: %v", err)
	}
	for _, g := range proposal.Suggestions {
		l.Do(study.Start{Ask: study.Ask{Count: 1}, Trial: l.S.Trials(), Suggestion: g})
	}
	return len(proposal.Suggestions)
}

// tell ends the oldest running trial, sometimes with a failure.
func (l *lab) tell() {
	for t := range l.S.All(0) {
		if t.State != study.Running {
			continue
		}
		o := study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{float64(t.Number % 7)}}}}
		if t.Number%5 == 3 {
			o = study.Outcome{State: study.Failed}
		}
		l.Do(study.Tell{Trial: t.Number, Outcome: o})
		return
	}
}

// restart replays the log and makes a new proposer.
func (l *lab) restart(c study.Component, spec study.Spec) Proposer {
	l.T.Helper()
	s, err := study.Replay(slices.Values(l.Log))
	if err != nil {
		l.T.Fatalf("replay: %v", err)
	}
	l.S = s
	return must(l.T, c, spec)
}

func must(t labtest.Fataler, c study.Component, spec study.Spec) Proposer {
	t.Helper()
	p, err := New(c, spec)
	if err != nil {
		t.Fatalf("%v", err)
	}
	return p
}

func suggestions(s *study.Study) []string {
	var out []string
	for t := range s.All(0) {
		out = append(out, fmt.Sprintf("%s: %s, seed %d, phase %s", t.Origin, t.Config, t.Suggestion.Seed, t.Suggestion.Phase))
	}
	return out
}

// Restarting does not change the search. Every proposer runs many trials on every space,
// with failures, three workers and a user who enqueues sometimes. One run is uninterrupted,
// and one restarts after every tell.
func TestRestartAfterEveryTellChangesNothing(t *testing.T) {
	racetest.Alone(t)
	for name, text := range labtest.Spaces {
		for _, proposer := range []string{Sobol, Random, Grid} {
			t.Run(name+"/"+proposer, func(t *testing.T) {
				spec := labtest.SpecOf(labtest.Parse(t, text), 99)
				run := func(restart bool) []string {
					c := study.Component{Name: proposer}
					l, p := newLab(t, spec), must(t, c, spec)
					l.ask(p, 3)
					for n := range racetest.Size(120, 300) {
						if n%50 == 20 {
							first, _ := l.S.Trial(0)
							l.Do(study.Enqueue{Config: first.Config})
						}
						l.tell()
						if restart {
							p = l.restart(c, spec)
						}
						if l.ask(p, 1) == 0 {
							break
						}
					}
					return suggestions(l.S)
				}
				straight, restarted := run(false), run(true)
				if !slices.Equal(straight, restarted) {
					t.Errorf("in one go:\n%s\nrestarted:\n%s", strings.Join(straight, "\n"), strings.Join(restarted, "\n"))
				}
			})
		}
	}
}

// On any space, suggestions are valid, n at once equal n in turn, and none repeats another
// while new ones are left.
func TestProposalsOnAnySpace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sp := spacetest.Spaces(6).Draw(t, "space")
		spec := labtest.SpecOf(sp, rapid.Uint64().Draw(t, "seed"))
		c := study.Component{Name: rapid.SampledFrom([]string{Sobol, Random, Grid}).Draw(t, "proposer")}
		if c.Name == Grid {
			c.Options = `{"points": 3}`
		}
		p, err := New(c, spec)
		if err != nil {
			if c.Name == Grid && strings.Contains(err.Error(), "cells") {
				return
			}
			t.Fatalf("%v", err)
		}
		one, many := newLab(t, spec), newLab(t, spec)
		q := must(t, c, spec)
		for range rapid.IntRange(1, 8).Draw(t, "asks") {
			n := rapid.IntRange(1, 5).Draw(t, "n")
			got := many.ask(q, n)
			for range got {
				one.ask(p, 1)
			}
			if got < n && c.Name != Grid {
				t.Fatalf("%d suggestions instead of %d", got, n)
			}
		}
		if a, b := suggestions(one.S), suggestions(many.S); !slices.Equal(a, b) {
			t.Fatalf("one by one:\n%s\nat once:\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
		}
		seen := make(map[string]bool)
		for s := range one.S.All(0) {
			seen[s.Config.String()] = true
		}
		if n := one.S.Trials(); c.Name == Grid && len(seen) < n {
			t.Fatalf("%d of %d cells are different", len(seen), n)
		}
	})
}

// While less than half of a finite space is taken, skipping 64 known configurations fails
// with probability 2⁻⁶⁴.
func TestNoRepetitionsWhileThereIsRoom(t *testing.T) {
	for _, proposer := range []string{Sobol, Random} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["finite"]), 5) // 150 configurations
		l, p := newLab(t, spec), must(t, study.Component{Name: proposer}, spec)
		seen := make(map[string]int)
		for range 15 {
			l.ask(p, 5)
		}
		for s := range l.S.All(0) {
			if other, twice := seen[s.Config.String()]; twice {
				t.Errorf("%s: trial %d repeats trial %d", proposer, s.Number, other)
			}
			seen[s.Config.String()] = s.Number
		}
	}
}

// When everything has been tried, sobol and random go on.
func TestDesignsGoOnWhenASpaceIsExhausted(t *testing.T) {
	for _, proposer := range []string{Sobol, Random} {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["tiny"]), 5) // 3 configurations
		l, p := newLab(t, spec), must(t, study.Component{Name: proposer}, spec)
		for range 40 {
			l.ask(p, 5)
		}
		count := make(map[string]int)
		for s := range l.S.All(0) {
			count[s.Config.String()]++
		}
		if len(count) != 3 || l.S.Trials() != 200 {
			t.Errorf("%s: %v", proposer, count)
		}
	}
}

// Of 2ᵐ Sobol' suggestions, each of k equal cells of a parameter gets its share, up to one
// point at each of its two ends.
func TestSobolSharesOutValues(t *testing.T) {
	sp := labtest.Parse(t, `{"x": {"type": "float", "low": 0, "high": 1}, "k": {"type": "categorical", "values": ["a", "b", "c"]}, "n": {"type": "int", "low": 1, "high": 7}}`)
	for seed := range uint64(10) {
		spec := labtest.SpecOf(sp, seed)
		l, p := newLab(t, spec), must(t, study.Component{}, spec)
		l.ask(p, 256)
		count := make(map[string]float64)
		for s := range l.S.All(0) {
			k, _ := s.Config.Get("k")
			n, _ := s.Config.Get("n")
			count["k "+k.String()]++
			count["n "+n.String()]++
		}
		for what, n := range count {
			want := 256.0 / 3
			if what[0] == 'n' {
				want = 256.0 / 7
			}
			if n < want-2 || n > want+2 {
				t.Errorf("seed %d: %s %g times, want %.1f ± 2", seed, what, n, want)
			}
		}
	}
}

// The seed alone gives the configuration again, and fallbacks in between do not move the
// sequence.
func TestOwnSuggestionsAreTold(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["continuous"]), 4)
	plain, mixed := newLab(t, spec), newLab(t, spec)
	p, q, fallback := must(t, study.Component{}, spec), must(t, study.Component{}, spec), must(t, study.Component{Name: Random}, spec)
	var own []space.Config
	for n := range 20 {
		plain.ask(p, 1)
		if n%3 == 1 {
			proposal, err := fallback.Propose(context.Background(), mixed.S, 1)
			if err != nil {
				t.Fatal(err)
			}
			g := proposal.Suggestions[0]
			g.Phase = "fallback"
			mixed.Do(study.Start{Ask: study.Ask{Count: 1}, Trial: mixed.S.Trials(), Suggestion: g})
		}
		mixed.ask(q, 1)
		last, _ := mixed.S.Trial(mixed.S.Trials() - 1)
		own = append(own, last.Config)
	}
	for n, c := range own {
		if want, _ := plain.S.Trial(n); !want.Config.Equal(c) {
			t.Errorf("suggestion %d: %s, without fallbacks in between %s", n, c, want.Config)
		}
	}
}

// Logged studies depend on these values, which were recorded from this implementation. If
// they change, replays differ.
func TestGoldenSuggestions(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["mixed"]), 1)
	for proposer, want := range map[string][]string{
		Sobol: {
			"suggested: k=b n=85 seed=17 x=-2.54020582592, seed 0, phase start",
			"suggested: k=a n=1 seed=17 x=3.34741633782, seed 1, phase start",
			"suggested: k=c n=8 seed=17 x=1.65961327146, seed 2, phase start",
		},
		Random: {
			"suggested: k=c n=1 seed=17 x=-2.69513326905, seed 546377787038467176, phase start",
			"suggested: k=c n=5 seed=17 x=3.21346587763, seed 11414783341382961282, phase start",
			"suggested: k=b n=14 seed=17 x=1.78286127112, seed 11746250477766771390, phase start",
		},
		Grid: {
			"suggested: k=c n=60 seed=17 x=-5, seed 0, phase start",
			"suggested: k=c n=9 seed=17 x=1.66666666667, seed 1, phase start",
			"suggested: k=c n=83 seed=17 x=2.77777777778, seed 2, phase start",
		},
	} {
		l, p := newLab(t, spec), must(t, study.Component{Name: proposer}, spec)
		l.ask(p, 3)
		if got := suggestions(l.S); !slices.Equal(got, want) {
			t.Errorf("%s: got\n%s\nwant\n%s", proposer, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
}

// These are the limits of package space, 1,000 parameters and 10,000 values.
func TestLargestSpaces(t *testing.T) {
	racetest.Alone(t)
	floats, values := []space.Parameter{}, []space.Value{}
	for i := range space.MaxParameters {
		floats = append(floats, space.NewFloat(fmt.Sprint("x", i), 0, 1))
	}
	for i := range int64(space.MaxValues) {
		values = append(values, space.Int(i))
	}
	for _, parameters := range [][]space.Parameter{floats, {space.NewCategorical("k", values...)}} {
		sp, err := space.New(parameters...)
		if err != nil {
			t.Fatal(err)
		}
		for _, proposer := range []string{Sobol, Random, Grid} {
			c := study.Component{Name: proposer}
			if proposer == Grid {
				c.Options = `{"points": 1}`
			}
			spec := labtest.SpecOf(sp, 1)
			l := newLab(t, spec)
			l.ask(must(t, c, spec), 5)
			if l.S.Trials() == 0 {
				t.Errorf("%s: no suggestion for %d parameters", proposer, len(parameters))
			}
		}
	}
}

// Options of any text are accepted or refused without a panic.
func FuzzNew(f *testing.F) {
	f.Add(Grid, `{"points": 3, "order": "lexicographic", "levels": {"n": 2, "x": 1}}`)
	f.Add(Sobol, ``)
	sp := labtest.Parse(f, labtest.Spaces["mixed"])
	f.Fuzz(func(t *testing.T, name, options string) {
		spec := labtest.SpecOf(sp, 1)
		p, err := New(study.Component{Name: name, Options: options}, spec)
		if err == nil {
			newLab(t, spec).ask(p, 2)
		}
	})
}

func TestFaultyComponents(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["mixed"]), 1)
	for _, test := range []struct{ name, options, want string }{
		{"bkb2", ``, `proposer.name = "bkb2": there is no such proposer; use bkb, sobol, random or grid`},
		{"sobol", `[]`, `proposer.options = []: must be a JSON object; write it as {"name": value}`},
		{"", `{`, `proposer.options = {: must be a JSON object; write it as {"name": value}`},
		{"random", `{"points": 3}`, `proposer.options.points = 3: there is no such option; random has no options`},
		{"grid", `{"Points": 3}`, `proposer.options.Points = 3: there is no such option; the options of grid are points, order, levels`},
		{"grid", `{"points": 3, "points": 3}`, `proposer.options.points = 3: is there twice; remove one`},
		{"grid", `{"points": 0}`, `proposer.options.points = 0: must be a whole number from 1 to 1000`},
		{"grid", `{"points": 2.5}`, `proposer.options.points = 2.5: must be a whole number from 1 to 1000`},
		{"grid", `{"points": null}`, `proposer.options.points = null: must be a whole number from 1 to 1000`},
		{"grid", `{"order": "random"}`, `proposer.options.order = "random": must be shuffled or lexicographic`},
		{"grid", `{"levels": {"y": 3}}`, `proposer.options.levels.y = 3: there is no such parameter`},
		{"grid", `{"levels": {"k": 2}}`, `proposer.options.levels.k = 2: the values of a categorical are not thinned; list fewer values in the space`},
		{"grid", `{"levels": {"n": 1001}}`, `proposer.options.levels.n = 1001: must be a whole number from 1 to 1000`},
		{"grid", `{"levels": 3}`, `proposer.options.levels = 3: must be a JSON object; write it as {"name": value}`},
	} {
		_, err := New(study.Component{Name: test.name, Options: test.options}, spec)
		var invalid *study.InvalidError
		if !errors.As(err, &invalid) || err.Error() != test.want {
			t.Errorf("%s %s: got %v, want %s", test.name, test.options, err, test.want)
		}
	}
}

func TestCancelledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["mixed"]), 1)
	for _, proposer := range []string{Sobol, Random, Grid} {
		_, err := must(t, study.Component{Name: proposer}, spec).Propose(ctx, newLab(t, spec).S, 1)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", proposer, err)
		}
	}
}

// The suggestion after 100,000 trials costs as much as the one after 1,000. The finite
// space is the harder case, because its digest grows.
func BenchmarkPropose(b *testing.B) {
	for _, name := range []string{"continuous", "finite large"} {
		text := labtest.Spaces[name]
		if name == "finite large" {
			text = `{"a": {"type": "int", "low": 0, "high": 9999}, "b": {"type": "int", "low": 0, "high": 9999}}`
		}
		for _, proposer := range []string{Sobol, Random, Grid} {
			b.Run(name+"/"+proposer, func(b *testing.B) {
				spec := labtest.SpecOf(labtest.Parse(b, text), 1)
				options := study.Component{Name: proposer}
				if proposer == Grid {
					options.Options = `{"points": 1000}`
				}
				l, p := newLab(b, spec), must(b, options, spec)
				cost := func() time.Duration {
					began := time.Now()
					for range 1000 {
						if _, err := p.Propose(context.Background(), l.S, 1); err != nil {
							b.Fatal(err)
						}
					}
					return time.Since(began) / 1000
				}
				var small, large time.Duration
				for l.S.Trials() < 100_000 {
					if l.S.Trials() == 1000 {
						small = cost()
					}
					l.ask(p, 1000)
				}
				for b.Loop() {
					large = cost()
				}
				b.ReportMetric(float64(large.Nanoseconds()), "ns/suggestion")
				b.ReportMetric(float64(large)/float64(small), "cost-100k/1k")
			})
		}
	}
}
