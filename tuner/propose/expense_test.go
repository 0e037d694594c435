package propose

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// costed is a task in which every evaluation has a cost.
type costed struct {
	task
	cost func(c space.Config) float64
}

// spending minimizes a task until its budget is spent, and returns the regret after each of
// the given costs.
func spending(t labtest.Fataler, k costed, c study.Component, seed uint64, costs []float64) []float64 {
	spec := labtest.SpecOf(k.Space, seed)
	spec.MaxCost = costs[len(costs)-1]
	l, p := newLab(t, spec), must(t, c, spec)
	best, spent, out := math.Inf(1), 0.0, []float64(nil)
	for {
		n := l.step(p)
		trial, _ := l.S.Trial(n)
		cost := k.cost(trial.Config)
		spent += cost
		for len(out) < len(costs) && spent >= costs[len(out)] {
			out = append(out, best-k.Best) // omit values that were not ready in time
		}
		y := k.Value(trial.Config)
		best = min(best, y)
		o := study.Outcome{State: study.Completed, Cost: cost, Metrics: []study.Metric{{Name: "loss", Values: []float64{y}}}}
		l.Do(study.Tell{Trial: n, Outcome: o})
		if status, how := l.S.Status(); status == study.StatusFinished {
			if how.Reason != study.FinishedCost {
				t.Fatalf("the study ended: %v", how)
			}
			return out
		}
	}
}

// costlyBowl is the slope of a bowl. Good configurations cost between little and a hundred
// times as much.
func costlyBowl(t labtest.Fataler) costed {
	sp := labtest.Parse(t, `{"x": {"type": "float", "low": 0, "high": 1}, "y": {"type": "float", "low": 0, "high": 1}}`)
	at := func(c space.Config) (x, y float64) {
		u := make([]float64, 2)
		if err := sp.Encode(c, u); err != nil {
			t.Fatalf("%v", err)
		}
		return u[0], u[1]
	}
	return costed{
		task{Name: "bowl", Space: sp, Value: func(c space.Config) float64 {
			x, y := at(c)
			return math.Pow(x-0.3, 2) + 0.3*math.Pow(y-0.25, 2) + 0.05*(1-math.Cos(12*(x-0.3)))
		}},
		func(c space.Config) float64 { _, y := at(c); return math.Exp(4.6 * y) },
	}
}

// svmTable is the table of Snoek, Larochelle and Adams (2012). It has the error of a
// structured support vector machine, and the training time in seconds.
func svmTable(t *testing.T) (k costed, ok bool) {
	dir := os.Getenv("BKB_DATA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "data")
	}
	rows := readTable(t, filepath.Join(dir, "hpo_snoek2012", "svm.csv.gz"))
	if rows == nil {
		return k, false
	}
	seconds := make(map[string]float64)
	for _, r := range rows {
		v, err := strconv.ParseFloat(r[4], 64)
		if err != nil {
			t.Fatal(err)
		}
		seconds[strings.Join(r[:3], "\n")] = v
	}
	k.task = tableTask(t, "svm", rows, func(r []string) ([]string, float64) {
		v, _ := strconv.ParseFloat(r[3], 64)
		return r[:3], v
	}, true)
	k.cost = func(c space.Config) float64 {
		var key []string
		for i := range 3 {
			v, _ := c.Get(fmt.Sprintf("p%d", i))
			text, _ := v.AsString()
			key = append(key, text)
		}
		return seconds[strings.Join(key, "\n")]
	}
	return k, true
}

// Trials added with costs are known to the model but spend nothing, and a warning says so.
func TestCostsOfAddedTrials(t *testing.T) {
	for _, costly := range []int{0, 3, 8} {
		for _, options := range []string{`{"cost": "told"}`, `{"cost": "seconds"}`, ``} {
			spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["continuous"]), 1)
			spec.MaxCost = 100
			l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
			add := func(i int, cost float64) {
				c, err := spec.Space.Decode([]float64{float64(i) / 10, float64(i*3%10) / 10})
				if err != nil {
					t.Fatal(err)
				}
				o := labtest.Completed(spec, labtest.Bowl(spec.Space, c))
				o.Cost = cost
				l.Do(study.Add{Config: c, Outcome: o})
			}
			for i := range 8 {
				add(i+1, map[bool]float64{true: 5}[i < costly])
			}
			want := "is not spent: none of 8 results was told with a cost"
			if costly > 0 {
				want = fmt.Sprintf("is not spent: %d of 8 results have a cost, but they are added trials", costly)
			}
			warned := strings.Join(l.propose(p, 1).Warnings, "\n")
			if !strings.Contains(warned, want) || strings.Contains(warned, "full weight") != (options != "") {
				t.Errorf("%d costs, %s: warned %q, want %q", costly, options, warned, want)
			}
			// A trial that was handed out spends.
			n := l.step(p)
			trial, _ := l.S.Trial(n)
			o := labtest.Completed(spec, labtest.Bowl(spec.Space, trial.Config))
			o.Cost = 2
			l.Do(study.Tell{Trial: n, Outcome: o})
			if warned := strings.Join(l.propose(p, 1).Warnings, "\n"); l.S.Cost() != 2 || strings.Contains(warned, "max_cost") {
				t.Errorf("%d costs, %s: %v is spent, warned %q", costly, options, l.S.Cost(), warned)
			}
		}
	}
}

// With known costs, the search finds better values for the same cost. The test runs the
// bowl over 15 seeds. BKB_EXPERIMENT=seeds runs both problems and prints figures.
func TestCostAware(t *testing.T) {
	racetest.Alone(t)
	seeds, full := 15, false
	if n, err := strconv.Atoi(os.Getenv("BKB_EXPERIMENT")); err == nil {
		seeds, full = n, true
	}
	type problem struct {
		costed
		costs []float64
	}
	problems := []problem{{costlyBowl(t), []float64{60, 100, 150}}}
	if full {
		if k, ok := svmTable(t); ok {
			problems = append(problems, problem{k, []float64{3000, 6000, 12_000}})
		}
	}
	for _, k := range problems {
		means := make(map[string][]float64) // of log regret, by cost
		for _, options := range []string{`{}`, `{"cost": "told"}`} {
			sums := make([]float64, len(k.costs))
			var all [][]float64
			for seed := range seeds {
				got := spending(t, k.costed, study.Component{Name: BKB, Options: options}, uint64(seed+1), k.costs)
				for i, v := range got {
					sums[i] += math.Log(max(min(v, 1), 1e-6)) / float64(seeds)
				}
				all = append(all, got)
			}
			means[options] = sums
			for i, cost := range k.costs {
				var at []float64
				for _, v := range all {
					at = append(at, v[i])
				}
				slices.Sort(at)
				t.Logf("%s %-16s cost %6.0f: regret %.3g (median %.3g, worst %.3g)", k.Name, options, cost, math.Exp(sums[i]), at[len(at)/2], at[len(at)-1])
			}
		}
		better := 0.0
		for i, v := range means[`{"cost": "told"}`] {
			better += means[`{}`][i] - v
		}
		if better < 0 {
			t.Errorf("%s: costs make it worse: log regrets %v", k.Name, means)
		}
	}
}
