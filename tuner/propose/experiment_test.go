package propose

import (
	"cmp"
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/internal/datatest"
	"github.com/bkbtuner/bkb/internal/problems/bbob"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// bbobTasks are BBOB's functions in the given dimensions, of an instance that the
// benchmarks do not use.
func bbobTasks(t labtest.Fataler, instance int, dims ...int) []labtest.Task {
	var out []labtest.Task
	for _, d := range dims {
		for f := range bbob.Functions {
			f, err := bbob.New(f+1, d, instance)
			if err != nil {
				t.Fatalf("%v", err)
			}
			out = append(out, labtest.BoxTask(t, labtest.Function{Label: f.String(), Dim: d, F: f.Above}))
		}
	}
	return out
}

// tableTasks are tables of measured configurations from the real data sets. They are
// chemistry by categories, and the hyper-parameters of a perceptron. It returns none if the
// data are missing.
func tableTasks(t *testing.T) []labtest.Task {
	dir := datatest.Find()
	var out []labtest.Task
	for _, name := range []string{"buchwald_a", "suzuki_edbo", "perovskites"} {
		if rows := readTable(t, filepath.Join(dir, "chem_olympus", name+".data.csv.gz")); rows != nil {
			maximise := -1.0
			if name == "perovskites" {
				maximise = 1
			}
			out = append(out, tableTask(t, name, rows, func(r []string) ([]string, float64) {
				v, _ := strconv.ParseFloat(r[len(r)-1], 64)
				return r[:len(r)-1], maximise * v
			}, false))
		}
	}
	if rows := readTable(t, filepath.Join(dir, "hpo_simplehpobench", "hpobench_car.csv.gz")); rows != nil {
		out = append(out, tableTask(t, "car", rows[1:], func(r []string) ([]string, float64) {
			missed := 1.0 // computed from the accuracy, which the table has
			for _, text := range r[5:] {
				v, _ := strconv.ParseFloat(text, 64)
				missed -= v / float64(len(r)-5)
			}
			return r[:5], missed
		}, true))
	}
	return out
}

func readTable(t *testing.T, path string) [][]string {
	f, err := os.Open(path)
	if err != nil {
		t.Logf("left out: %v", err)
		return nil
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(z).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// tableTask makes a task from rows. The function split returns a row's configuration and
// value to minimize. Configurations that are not in the table have its worst value.
func tableTask(t *testing.T, name string, rows [][]string, split func(r []string) ([]string, float64), ordinal bool) labtest.Task {
	values := make(map[string]float64)
	best, worst := math.Inf(1), math.Inf(-1)
	var levels []map[string]bool
	for _, r := range rows {
		key, v := split(r)
		if levels == nil {
			for range key {
				levels = append(levels, make(map[string]bool))
			}
		}
		for i, text := range key {
			levels[i][text] = true
		}
		values[strings.Join(key, "\n")] = v
		best, worst = min(best, v), max(worst, v)
	}
	var parameters []space.Parameter
	for i, l := range levels {
		texts := slices.Sorted(maps.Keys(l))
		if ordinal {
			slices.SortFunc(texts, func(a, b string) int {
				x, _ := strconv.ParseFloat(a, 64)
				y, _ := strconv.ParseFloat(b, 64)
				return cmp.Compare(x, y)
			})
		}
		var list []space.Value
		for _, text := range texts {
			list = append(list, space.String(text))
		}
		p := space.NewCategorical(fmt.Sprintf("p%d", i), list...)
		if ordinal {
			p = space.NewOrdinal(fmt.Sprintf("p%d", i), list...)
		}
		parameters = append(parameters, p)
	}
	sp, err := space.New(parameters...)
	if err != nil {
		t.Fatal(err)
	}
	return labtest.Task{Name: name, Space: sp, Value: func(c space.Config) float64 {
		var key []string
		for i := range levels {
			v, _ := c.Get(fmt.Sprintf("p%d", i))
			text, _ := v.AsString()
			key = append(key, text)
		}
		if v, ok := values[strings.Join(key, "\n")]; ok {
			return v
		}
		return worst
	}, Best: best}
}

// step asks and starts one trial, with the model events that are due.
func (l *lab) step(p Proposer) int {
	l.T.Helper()
	if a, ok := p.(Anchorer); ok {
		if anchor, due, err := a.Anchor(context.Background(), l.S); err != nil {
			l.T.Fatalf("anchor: %v", err)
		} else if due {
			l.Do(anchor)
		}
	}
	n := l.S.Trials()
	l.ask(p, 1)
	return n
}

// search minimizes a task and returns the best value after each of the budgets.
func search(t labtest.Fataler, k labtest.Task, c study.Component, seed uint64, budgets []int) []float64 {
	spec := labtest.SpecOf(k.Space, seed)
	l, p := newLab(t, spec), must(t, c, spec)
	best, at := math.Inf(1), []float64(nil)
	for len(at) < len(budgets) {
		n := l.step(p)
		trial, _ := l.S.Trial(n)
		y := k.Value(trial.Config)
		best = min(best, y)
		l.Do(study.Tell{Trial: n, Outcome: study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: "loss", Values: []float64{y}}}}})
		if n+1 == budgets[len(at)] {
			at = append(at, best-k.Best)
		}
	}
	return at
}

// TestExperiment compares proposers. Set BKB_EXPERIMENT to the number of seeds to run it.
func TestExperiment(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("BKB_EXPERIMENT"))
	if err != nil {
		t.Skip("takes minutes a seed: BKB_EXPERIMENT=3 go test -timeout 0 -run TestExperiment ./tuner/propose runs it over so many seeds")
	}
	proposers := []study.Component{{Name: BKB}, {Name: Random}, {Name: Sobol}}
	if text := os.Getenv("BKB_EXPERIMENT_OPTIONS"); text != "" {
		proposers = nil
		for o := range strings.SplitSeq(text, ";") {
			proposers = append(proposers, study.Component{Name: BKB, Options: o})
		}
	}
	budgets := []int{50, 100, 200}
	for _, k := range append(labtest.Tasks(t), tableTasks(t)...) {
		if only := os.Getenv("BKB_EXPERIMENT_TASKS"); only != "" && !slices.Contains(strings.Split(only, ","), k.Name) {
			continue
		}
		for _, c := range proposers {
			start := time.Now()
			regrets := make([][]float64, len(budgets))
			for seed := range seeds {
				for i, v := range search(t, k, c, uint64(seed+1), budgets) {
					regrets[i] = append(regrets[i], v)
				}
			}
			line := fmt.Sprintf("%-12s %-8s %-24s", k.Name, c.Name, c.Options)
			for _, v := range regrets {
				slices.Sort(v)
				logs := 0.0
				for _, r := range v {
					logs += math.Log(max(r, 1e-9)) / float64(len(v))
				}
				line += fmt.Sprintf("  %9.3g ~%8.3g [%8.2g]", v[len(v)/2], math.Exp(logs), v[len(v)-1])
			}
			t.Logf("%s  %.1fs", line, time.Since(start).Seconds()/float64(seeds))
		}
	}
}

// TestVariants compares options of BKB on BBOB's functions. BKB_EXPERIMENT is the number of
// seeds, BKB_EXPERIMENT_BBOB the dimensions, and BKB_EXPERIMENT_OPTIONS the options. The
// first options are the base of the comparison.
func TestVariants(t *testing.T) {
	seeds, err := strconv.Atoi(os.Getenv("BKB_EXPERIMENT"))
	if err != nil || os.Getenv("BKB_EXPERIMENT_BBOB") == "" {
		t.Skip("takes minutes a seed: BKB_EXPERIMENT=3 BKB_EXPERIMENT_BBOB=5 go test -timeout 0 -run TestVariants ./tuner/propose runs it over so many seeds in so many dimensions")
	}
	var dims []int
	for text := range strings.SplitSeq(os.Getenv("BKB_EXPERIMENT_BBOB"), ",") {
		d, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		dims = append(dims, d)
	}
	options := strings.Split(os.Getenv("BKB_EXPERIMENT_OPTIONS"), ";")
	budgets := []int{50, 100, 200}
	ratios := make([][][]float64, len(options)) // log10 of the ratio to the first, by budget
	for _, k := range bbobTasks(t, 2, dims...) {
		for seed := range seeds {
			line, base := fmt.Sprintf("%-10s %d", k.Name, seed+1), []float64(nil)
			for i, o := range options {
				got := search(t, k, study.Component{Name: BKB, Options: o}, uint64(seed+1), budgets)
				line += "  |"
				if ratios[i] == nil {
					ratios[i] = make([][]float64, len(budgets))
				}
				for n, v := range got {
					got[n] = math.Log10(max(v, 1e-8))
					line += fmt.Sprintf(" %6.2f", got[n])
				}
				if base == nil {
					base = got
				}
				for n, v := range got {
					ratios[i][n] = append(ratios[i][n], v-base[n])
				}
			}
			t.Log(line)
		}
	}
	for i, o := range options {
		line := fmt.Sprintf("%-40s", o)
		for _, v := range ratios[i] {
			sum, square, better, worse := 0.0, 0.0, 0, 0
			for _, r := range v {
				sum, square = sum+r/float64(len(v)), square+r*r/float64(len(v))
				if r < -0.02 {
					better++
				} else if r > 0.02 {
					worse++
				}
			}
			line += fmt.Sprintf("  %+.3f ± %.3f (%d better, %d worse)", sum, math.Sqrt(max(square-sum*sum, 0)/float64(len(v))), better, worse)
		}
		t.Log(line)
	}
}
