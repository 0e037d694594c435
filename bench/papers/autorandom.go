package papers

import (
	"context"
	"embed"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// randomTables are stored searches in the format of "tuner trials -f csv". They have a
// column for each hyper-parameter, and the last is the error.
//
//go:embed random/*.csv
var randomTables embed.FS

// randomSearch has the results of random configurations.
type randomSearch struct {
	errs []float64 // of completed trials
	best space.Config
}

// random returns a random search ten times as long as ours. It is that of the table, or a
// new one if the table has another size or is to be made again.
func (p *autoProblem) random(ctx context.Context, env *experiment.Env, trials int) (*randomSearch, error) {
	if env.Scale == experiment.Standard {
		return readRandom(p.tuning.Space(), p.name)
	}
	env.Report(0, 0, "%s: %d random configurations", p.name, 10*trials)
	s, err := p.search(ctx, env.Derive("auto random", 0), 10*trials, study.Component{Name: "random"}, study.Component{Name: "none"})
	if err != nil {
		return nil, err
	}
	return &randomSearch{s.errs, s.best.Config}, nil
}

// readRandom reads the table of a data set.
func readRandom(s *space.Space, name string) (*randomSearch, error) {
	f, err := randomTables.Open("random/" + name + ".csv")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no table of a random search on %s", name)
	} else if err != nil {
		return nil, err
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return nil, err
	}
	var out randomSearch
	least := math.Inf(1)
	for _, row := range rows[1:] {
		last := len(row) - 1
		e, err := strconv.ParseFloat(row[last], 64)
		if err != nil {
			return nil, fmt.Errorf("random/%s.csv: %w", name, err)
		}
		if out.errs = append(out.errs, e); e >= least {
			continue
		}
		least = e
		var values []space.Assignment
		for i, text := range row[:last] {
			values = append(values, space.Assignment{Name: rows[0][i], Value: space.String(text)})
		}
		if out.best, err = s.Complete(space.NewConfig(values...)); err != nil {
			return nil, fmt.Errorf("random/%s.csv: %w", name, err)
		}
	}
	return &out, nil
}

// expected returns the mean of the least of k of the errors, drawn without replacement. At
// most all errors are drawn.
func (s *randomSearch) expected(k int) float64 {
	sorted := slices.Sorted(slices.Values(s.errs))
	n := len(sorted)
	p, sum := float64(k)/float64(n), 0.0 // p is the probability that the least drawn error is the i-th
	for i := range n - k + 1 {
		sum += p * sorted[i]
		p *= float64(n-i-k) / float64(n-i-1)
	}
	return sum
}
