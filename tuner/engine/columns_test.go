package engine

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// expected returns what the columns should have for a trial.
func expected(spec study.Spec, t study.Trial) map[string]float64 {
	nan := math.NaN()
	stamp := func(at time.Time) float64 {
		if at.IsZero() {
			return nan
		}
		return float64(at.UnixMilli()) / 1000
	}
	phase := map[string]float64{"": 0, "start": 1, "model": 2, "exploit": 3, "explore": 4, "fallback": 5}
	out := map[string]float64{
		"state": float64(t.State), "origin": float64(t.Origin), "phase": phase[t.Suggestion.Phase], "epoch": float64(t.Epoch),
		"created": stamp(t.Created), "started": stamp(t.Started), "ended": stamp(t.Ended), "seen": stamp(t.Seen), "cost": nan,
	}
	if t.Outcome.Cost != 0 {
		out["cost"] = t.Outcome.Cost
	}
	metric := func(name string) float64 {
		m, ok := t.Outcome.Metric(name)
		if !ok {
			return nan
		}
		return m.Mean()
	}
	for j, o := range spec.Objectives {
		out["value/"+o.Name], out["report/"+o.Name] = metric(o.Name), nan
		for _, r := range t.Reports {
			for _, v := range r.Values {
				if v.Name == o.Name && r.Epoch == t.Epoch {
					out["report/"+o.Name] = v.Value
				}
			}
		}
		for name, list := range map[string][]float64{"mean": t.Suggestion.Mean, "sd": t.Suggestion.StdDev, "bound": t.Suggestion.Bound} {
			out[name+"/"+o.Name] = nan
			if len(list) > 0 {
				out[name+"/"+o.Name] = list[j]
			}
		}
	}
	out["metric/size"] = metric("size")
	out["feasible"] = 0
	if t.State == study.Completed && metric("size") <= 5 {
		out["feasible"] = 1
	}
	u := make([]float64, spec.Space.Dim())
	if err := spec.Space.Encode(t.Config, u); err != nil {
		panic(err)
	}
	for i, a := range spec.Space.Axes() {
		out["parameter/"+a.Parameter] = 65535
		if _, active := t.Config.Get(a.Parameter); active {
			out["parameter/"+a.Parameter] = math.Round(u[i] * 65534)
		}
	}
	for _, name := range []string{"lr", "n", "opt", "momentum"} {
		v, active := t.Config.Get(name)
		if x, ok := v.Number(); ok {
			out["config/"+name] = x
		} else if !active {
			out["config/"+name] = nan
		} else {
			out["config/"+name] = map[string]float64{"sgd": 1, "adam": 2}[v.String()]
		}
	}
	return out
}

// compareColumns compares columns with the trials one by one. before are older trials, of
// which only changed ones may be left out.
func compareColumns(t *testing.T, tn *Engine, c tuner.Columns, before []study.Trial) []study.Trial {
	t.Helper()
	trials, _, err := tn.Trials(t.Context(), "s", tuner.Filter{Reports: true})
	if err != nil {
		t.Fatal(err)
	}
	spec := must(tn.Study(t.Context(), "s")).Spec
	if c.Trials != len(trials) {
		t.Fatalf("%d trials, want %d", c.Trials, len(trials))
	}
	numbers := c.Find(tuner.ColumnNumber)
	row := func(n int) int { // of a trial, -1 for none
		if numbers == nil {
			return n
		}
		for i := range c.Rows {
			if int(numbers.At(i)) == n {
				return i
			}
		}
		return -1
	}
	for _, trial := range trials {
		i := row(trial.Number)
		if i < 0 {
			if trial.Number >= len(before) || before[trial.Number].State != trial.State || len(before[trial.Number].Reports) != len(trial.Reports) {
				t.Fatalf("trial %d has changed and is left out", trial.Number)
			}
			continue
		}
		if worker := c.Find("worker"); worker == nil || worker.Labels[int(worker.At(i))] != trial.Worker {
			t.Fatalf("trial %d: the column of the worker is %+v, want %q", trial.Number, worker, trial.Worker)
		}
		for name, want := range expected(spec, trial) {
			column := c.Find(name)
			if column == nil {
				t.Fatalf("there is no column %s", name)
			}
			if got := column.At(i); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Fatalf("trial %d: %s is %v, want %v", trial.Number, name, got, want)
			}
		}
	}
	return trials
}

// TestColumns compares the columns of a changing study with its trials. There are
// conditional parameters, NaN, infinities, replicates, pruned and failed trials.
func TestColumns(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 1))
	sp := must(space.New(space.NewFloat("lr", 1e-5, 1).WithScale(space.Log), space.NewInt("n", 1, 9),
		space.NewCategorical("opt", space.String("sgd"), space.String("adam")),
		space.NewFloat("momentum", 0, 0.9).Given("opt", space.String("sgd")), space.NewConstant("k", space.Int(3))))
	tn := open(t, memory.New(), Options{}, func(c *study.Spec) {
		c.Space = sp
		c.Proposer = study.Component{Name: propose.BKB, Options: `{"start": 6, "constraints": {"size": {"max": 5}}}`}
	})
	var before []study.Trial
	position := study.Position(0)
	partial := 0
	for step := range 40 {
		for range rng.IntN(3) {
			n := must(tn.Ask(t.Context(), "s", study.Ask{New: true})).Trials[0].Number
			for i := range rng.IntN(3) {
				v := []float64{rng.Float64(), math.NaN(), math.Inf(1)}[rng.IntN(3)]
				must(tn.Report(t.Context(), "s", study.ReportValues{Trial: n, Reports: []study.Report{{Step: int64(i), Values: []study.NamedValue{{Name: "loss", Value: v}}}}}))
			}
			o := study.Outcome{State: study.Completed, Cost: rng.Float64(), Metrics: []study.Metric{{Name: "loss", Values: []float64{rng.NormFloat64(), 1}}, {Name: "size", Values: []float64{10 * rng.Float64()}}}}
			switch rng.IntN(7) {
			case 0:
				o = study.Outcome{State: study.Failed, Reason: study.FailedCrash}
			case 1:
				o.State = study.Pruned
			case 2:
				o.Metrics[0].Values = []float64{math.Inf(1)}
			case 3:
				o.Metrics[0].Values = []float64{math.NaN()}
			case 4:
				continue
			}
			tell(t, tn, n, o)
		}
		if step%10 == 3 {
			tn.mu.Lock() // the columns go with the actor
			tn.drop(tn.inUse["s"])
			tn.mu.Unlock()
		}
		compareColumns(t, tn, must(tn.Columns(t.Context(), "s", tuner.ColumnQuery{})), nil)
		some := must(tn.Columns(t.Context(), "s", tuner.ColumnQuery{After: position}))
		if position > 0 && some.Rows < some.Trials {
			partial++
		}
		before = compareColumns(t, tn, some, before)
		position = some.Position
	}
	if partial < 20 {
		t.Errorf("only %d answers had some of the trials", partial)
	}
	if c := must(tn.Columns(t.Context(), "s", tuner.ColumnQuery{After: position})); c.Rows != 0 || c.Find(tuner.ColumnNumber) == nil {
		t.Errorf("without news there are %d rows", c.Rows)
	}
	if c := must(tn.Columns(t.Context(), "s", tuner.ColumnQuery{After: position + 99})); c.Rows != c.Trials {
		t.Errorf("after a position that is yet to come there are %d rows of %d", c.Rows, c.Trials)
	}
	c := must(tn.Columns(t.Context(), "s", tuner.ColumnQuery{Names: []string{"parameter/", "state"}}))
	var names []string
	for _, column := range c.Columns {
		names = append(names, column.Name)
		if len(column.Data) != column.Type.Size()*c.Rows {
			t.Errorf("%s has %d bytes for %d rows", column.Name, len(column.Data), c.Rows)
		}
	}
	if want := []string{"parameter/lr", "parameter/n", "parameter/opt", "parameter/momentum", "state"}; !slices.Equal(names, want) {
		t.Errorf("the columns are %v, want %v", names, want)
	}
	if labels := c.Find("state").Labels; len(labels) != 7 || labels[study.Pruned] != "pruned" {
		t.Errorf("the states are %v", labels)
	}
	if ticks := c.Find("parameter/opt").Ticks; len(ticks) != 2 || ticks[1].Value != space.String("adam") {
		t.Errorf("the ticks are %v", ticks)
	}
	_, err := tn.Columns(t.Context(), "s", tuner.ColumnQuery{Names: []string{"value/nonsense"}})
	wantCode(t, err, tuner.Invalid, "value/nonsense", "value/loss")
}

// TestColumnsAreNotShared checks that later changes leave an answer alone.
func TestColumnsAreNotShared(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	n := must(tn.Ask(t.Context(), "s", study.Ask{})).Trials[0].Number
	c := must(tn.Columns(t.Context(), "s", tuner.ColumnQuery{}))
	tell(t, tn, n, loss(1))
	must(tn.Columns(t.Context(), "s", tuner.ColumnQuery{}))
	if state := c.Find("state").At(0); state != float64(study.Running) {
		t.Errorf("the state in an earlier answer became %v", state)
	}
}

// TestColumnsWithoutConstraints checks that only a completed trial is feasible then.
func TestColumnsWithoutConstraints(t *testing.T) {
	tn := open(t, memory.New(), Options{}, nil)
	told := []study.Outcome{loss(1), {State: study.Pruned, Metrics: loss(1).Metrics}, {State: study.Failed, Reason: study.FailedCrash}, {State: study.Infeasible}}
	for _, o := range told {
		tell(t, tn, must(tn.Ask(t.Context(), "s", study.Ask{New: true})).Trials[0].Number, o)
	}
	must(tn.Ask(t.Context(), "s", study.Ask{New: true}))
	c := must(tn.Columns(t.Context(), "s", tuner.ColumnQuery{Names: []string{"feasible"}}))
	if want := []byte{1, 0, 0, 0, 0}; !slices.Equal(c.Columns[0].Data, want) {
		t.Errorf("feasible are %v, want %v", c.Columns[0].Data, want)
	}
}

// TestManyWorkers has more workers than a column names.
func TestManyWorkers(t *testing.T) {
	sp := must(space.New(space.NewFloat("x", 0, 1)))
	tn := open(t, memory.New(), Options{}, func(c *study.Spec) { c.Space, c.Proposer = sp, study.Component{Name: propose.Random} })
	const workers = 1003
	for i := range workers {
		must(tn.Ask(t.Context(), "s", study.Ask{New: true, Worker: fmt.Sprint("w", i)}))
	}
	for range 2 { // of the second call some columns are kept
		all := must(tn.Columns(t.Context(), "s", tuner.ColumnQuery{Names: []string{"worker"}}))
		c := all.Find("worker")
		for i, want := range map[int]string{0: "w0", 999: "w999", 1000: "others", workers - 1: "others"} {
			if got := c.Labels[int(c.At(i))]; got != want {
				t.Errorf("trial %d has the worker %q, want %q", i, got, want)
			}
		}
	}
}
