package bo

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/tuner/space"
)

// counted is an optimiser that counts the trials that it was asked for and not told.
type counted struct {
	scripted
	open []int // after each ask
	now  int
}

func (o *counted) Ask(ctx context.Context) (space.Config, error) {
	c, err := o.scripted.Ask(ctx)
	if err == nil {
		o.now++
		o.open = append(o.open, o.now)
	}
	return c, err
}

func (o *counted) Tell(ctx context.Context, c space.Config, value float64, ok bool) error {
	o.now--
	return o.scripted.Tell(ctx, c, value, ok)
}

// Workers run as many trials at a time as there are, each trial ends once and not in the order
// of the asks, and a space without further configurations ends the run after the last of them.
func TestWorkers(t *testing.T) {
	sp, err := space.New(space.NewFloat("x", 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	const most = 30
	for _, workers := range []int{0, 1, 4, 8, 2 * most} {
		for _, trials := range []int{most / 2, most, 2 * most} {
			o := &counted{scripted: scripted{space: sp}}
			for i := range most {
				o.x = append(o.x, float64(i)/(2*most))
			}
			r := &runner{run: Run{Problem: "test/steep", Seed: 3, Median: 0.25}, problem: steep{sp, 0}, optimiser: o, workers: workers}
			if err := r.do(t.Context(), trials); err != nil {
				t.Fatal(err)
			}
			want := min(trials, most)
			var values []float64
			for _, m := range r.run.Trials {
				values = append(values, m.True)
			}
			ordered := slices.IsSorted(values)
			slices.Sort(values)
			if len(slices.Compact(values)) != want || len(o.told) != want || len(o.open) != want || o.now != 0 {
				t.Errorf("%d workers: %d different trials, %d told, %d asked, %d open, want %d", workers, len(values), len(o.told), len(o.open), o.now, want)
			}
			if ended := r.run.Ended != ""; ended != (trials > most) {
				t.Errorf("%d workers, %d trials: ended %q", workers, trials, r.run.Ended)
			}
			for i, open := range o.open {
				if open != min(i+1, max(workers, 1)) {
					t.Errorf("%d workers: %d trials are open after ask %d", workers, open, i)
				}
			}
			if ordered != (workers <= 1) {
				t.Errorf("%d workers: the trials are in order: %t", workers, ordered)
			}
		}
	}
}

// Eight workers of BKB run different configurations, and the run is the same again.
func TestParallelRuns(t *testing.T) {
	c := &Comparison{Tier: Smoke, Problems: []string{"classic/branin"}, Optimisers: []string{"bkb", "bkb-workers8"}, Seeds: 1, SkipSeeds: 4, Trials: 40}
	var first []string
	for range 2 {
		c.Out = t.TempDir()
		if done, err := c.Execute(t.Context()); err != nil || done.Ran != 2 || len(done.Failed) > 0 {
			t.Fatalf("%+v, %v", done, err)
		}
		all := trialsOf(t, c)
		if first == nil {
			first = all
		}
		if !slices.Equal(first, all) {
			t.Error("the runs differ the second time")
		}
	}
	got, err := c.Report()
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(got.Tables, func(f *report.Table) bool { return f.Name == "workers" })
	if at < 0 || len(got.Tables[at].Rows) != 2 { // after 20 and 40 trials
		t.Fatalf("table %d", at)
	}
	one, err1 := readRun(c.Out, "classic/branin", "bkb", 5)
	eight, err2 := readRun(c.Out, "classic/branin", "bkb-workers8", 5)
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	want := eight.regret(40, measured) / one.regret(40, measured)
	if got := got.Tables[at].Float("ratio of means")[1]; math.Abs(got-want) > 1e-9*want {
		t.Errorf("a ratio of %v, want %v", got, want)
	}
	var values []float64
	for _, m := range eight.Trials {
		values = append(values, m.Value)
	}
	slices.Sort(values)
	if len(slices.Compact(values)) != 40 {
		t.Error("configurations repeat")
	}
}
