package propose

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// nearby runs 200 trials of a task, or the number that logs needs. It returns how many were
// within 1e-3, 1e-4, 1e-5 and 1e-6 of the cube (the largest difference of a coordinate) of an
// earlier trial, and log10 of the regret after each of the budgets.
func nearby(t labtest.Fataler, k task, options string, seed uint64, budgets []int) (near [4]int, logs []float64) {
	spec := labtest.SpecOf(k.Space, seed)
	l, p := newLab(t, spec), must(t, study.Component{Name: BKB, Options: options}, spec)
	best, xs := math.Inf(1), [][]float64(nil)
	for len(logs) < len(budgets) {
		trial, _ := l.S.Trial(l.step(p))
		x := make([]float64, k.Space.Dim())
		if err := k.Space.Encode(trial.Config, x); err != nil {
			t.Fatalf("%v", err)
		}
		least := math.Inf(1)
		for _, v := range xs {
			far := 0.0
			for c := range x {
				far = max(far, math.Abs(x[c]-v[c]))
			}
			least = min(least, far)
		}
		for i, limit := range []float64{1e-3, 1e-4, 1e-5, 1e-6} {
			if least < limit {
				near[i]++
			}
		}
		xs = append(xs, x)
		y := k.Value(trial.Config)
		best = min(best, y)
		l.Do(study.Tell{Trial: trial.Number, Outcome: labtest.Completed(spec, y)})
		if len(xs) == budgets[len(logs)] {
			logs = append(logs, math.Log10(max(best-k.Best, 1e-12)))
		}
	}
	return near, logs
}

// On a smooth function without noise, no trial is the same as an earlier one up to rounding unless
// duplicates are allowed. The optimum is found exactly. BKB_EXPERIMENT_NEAR=seeds prints figures.
func TestNearDuplicates(t *testing.T) {
	if testing.Short() {
		t.Skip("one goroutine computes all of it")
	}
	branin := tasks(t)[0]
	seeds, err := strconv.Atoi(os.Getenv("BKB_EXPERIMENT_NEAR"))
	if err != nil {
		near, logs := nearby(t, branin, `{"exploit_every": 0, "far": "off"}`, 1, []int{120})
		if near[3] > 0 || logs[0] > -4 {
			t.Errorf("of 120 trials %v are near to others; log10 of the regret %v", near, logs)
		}
		if near, logs := nearby(t, branin, `{"noise": "none"}`, 1, []int{120}); near[3] > 0 || logs[0] > -6 {
			t.Errorf("of 120 trials %v are near to others; log10 of the regret %v", near, logs)
		}
		if welcome, _ := nearby(t, branin, `{"exploit_every": 0, "far": "off", "on_duplicate": "replicate"}`, 1, []int{120}); welcome[3] < 6 {
			t.Errorf("where duplicates are welcome %v are near to others", welcome)
		}
		return
	}
	for _, k := range tasks(t) {
		if only := os.Getenv("BKB_EXPERIMENT_TASKS"); only != "" && !slices.Contains(strings.Split(only, ","), k.Name) {
			continue
		}
		var all [4]int
		var ends []float64
		for seed := range seeds {
			near, logs := nearby(t, k, os.Getenv("BKB_EXPERIMENT_OPTIONS"), uint64(seed+1), []int{200})
			ends = append(ends, logs...)
			for i, v := range near {
				all[i] += v
			}
		}
		t.Logf("%-12s of %d trials %v are near to others; log10 of the regrets %.2f", k.Name, 200*seeds, all, ends)
	}
}
