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
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

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
func tableTask(t *testing.T, name string, rows [][]string, split func(r []string) ([]string, float64), ordinal bool) task {
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
	return task{Name: name, Space: sp, Value: func(c space.Config) float64 {
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
	if a, ok := p.(Modeler); ok {
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
func search(t labtest.Fataler, k task, c study.Component, seed uint64, budgets []int) []float64 {
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
