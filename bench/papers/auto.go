package papers

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"time"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/learners/training"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/autotune"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/runner"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// auto measures the project's promise about tuning the bundled learners.
var auto = experiment.Experiment{
	Name:   "auto",
	Title:  "FALKON tuned in 60 trials against a random search of 600",
	Source: "ours",
	About: `The experiment runs "tuner auto falkon" in the process, with 60 trials on every fifth
row of the data, 8,000 of them. 60 % of the rows train, 20 % compare trials and 20 %
only judge the end result. The split is fixed, and the seeds are those of the proposer.
The space is kernel, one length scale, λ and M from 500 to 1,000. "validation" is the
least error of a trial. "test" is that of its configuration fitted to training and
validation rows. "recommended" and "test of that" belong to the trial that the model of
the proposer recommends, which "tuner best" shows.

"random ×10" is the least error of 600 random configurations of the space, without
pruning. "random" is the expected least error of 60 of them. With --full they are
measured, which takes 10 minutes of CPU. Otherwise they are read from a table that was
made with

  gunzip -c kin40k.data.csv.gz | awk 'NR%5 == 1' | head -n 8000 > kin40k.csv
  tuner auto falkon --data kin40k.csv --target -1 --trials 600 \
    --proposer random --pruner none --folds 1 --set iterations=20 \
    --set sampler=uniform --set relevance=equal --range centers=500..1000
  tuner trials falkon-kin40k -f csv

The table's best configuration is fitted again and compared. The ratio of validation to
"random ×10" should be at most 1.01 on average.`,
	Parts:   autoProblems,
	Repeats: 3,
	Measure: autotuned,
}

var autoProblems = []string{"kin40k", "protein"}

// autoFixed keeps the space at that of the stored tables.
var autoFixed = training.Values{"iterations": "20", "sampler": "uniform", "relevance": "equal"}

// autoRanges are those of the stored tables. Few rows have theory's range.
func autoRanges(n int) map[string]autotune.Range {
	if n < 1000 {
		return nil
	}
	return map[string]autotune.Range{"centers": {Low: 500, High: 1000}}
}

// autoSeed is the seed of the split and of all fits, which is the default of --seed.
const autoSeed = 1

func autotuned(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	trials := env.Pick(12, 60, 60)
	t := r.Table("auto", fmt.Sprintf("Error of FALKON after %d trials, rmse", trials),
		report.Column{Name: "data"}, report.Column{Name: "n"}, report.Column{Name: "seed"}, report.Column{Name: "validation", Format: "%.5f"},
		report.Column{Name: "random ×10", Format: "%.5f"}, report.Column{Name: "ratio", Format: "%.4f"}, report.Column{Name: "random", Format: "%.5f"},
		report.Column{Name: "theory", Format: "%.5f"}, report.Column{Name: "test", Format: "%.5f"}, report.Column{Name: "test of random's", Format: "%.5f"},
		report.Column{Name: "recommended", Format: "%.5f"}, report.Column{Name: "test of that", Format: "%.5f"}, report.Column{Name: "pruned"}, report.Column{Name: "CPU", Unit: "s", Format: "%.1f"})
	var missing *experiment.DataError
	err := eachPart(ctx, env, r, autoProblems, func(at int, part string) error {
		p, err := newAutoProblem(ctx, env, part, env.Pick(400, 8000, 8000))
		if err != nil {
			errors.As(err, &missing)
			return err
		}
		return p.compare(ctx, env, r, t, at, trials)
	})
	if err == nil && missing != nil && len(t.Rows) == 0 {
		return r, missing // nothing can be run
	}
	return r, err
}

// autoProblem is a data set on which FALKON is tuned.
type autoProblem struct {
	name   string
	tuning *autotune.Tuning
	rows   int // training rows
}

func newAutoProblem(ctx context.Context, env *experiment.Env, name string, rows int) (*autoProblem, error) {
	data, err := autoData(ctx, env, name, rows)
	if err != nil {
		return nil, err
	}
	a, err := training.Find("falkon")
	if err != nil {
		return nil, err
	}
	tn, err := autotune.New(ctx, a, data, autotune.Options{Seed: autoSeed, Workers: env.Workers, Fixed: autoFixed, Ranges: autoRanges(data.Train.Len())})
	return &autoProblem{name, tn, data.Train.Len()}, err
}

// autoData returns every fifth row of a UCI set, n at most, split as tuner auto does.
func autoData(ctx context.Context, env *experiment.Env, name string, n int) (*training.Data, error) {
	path, err := env.File("uci/" + name + ".data.csv.gz")
	if err != nil {
		return nil, err
	}
	some, err := everyFifth(path, n)
	if err != nil {
		return nil, err
	}
	defer os.Remove(some)
	table, err := dataset.Open(ctx, dataset.Options{Target: []string{"-1"}, Header: dataset.HeaderNo}, some)
	if err != nil {
		return nil, err
	}
	defer table.Close()
	return training.Prepare(ctx, table, training.Split{Validation: 0.2, Test: 0.2, Seed: autoSeed}, data.EncodingOptions{})
}

// everyFifth writes lines 1, 6, 11, …, n at most, of a gzipped file to a new one.
func everyFifth(path string, n int) (to string, err error) {
	in, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer in.Close()
	text, err := gzip.NewReader(in)
	if err != nil {
		return "", err
	}
	out, err := os.CreateTemp("", "bench-*.csv")
	if err != nil {
		return "", err
	}
	defer func() {
		if err = errors.Join(err, out.Close()); err != nil {
			os.Remove(out.Name())
		}
	}()
	w := bufio.NewWriter(out)
	lines := bufio.NewScanner(text)
	for at := 0; at < 5*n && lines.Scan(); at++ {
		if at%5 == 0 {
			fmt.Fprintln(w, lines.Text())
		}
	}
	return out.Name(), errors.Join(lines.Err(), w.Flush())
}

// compare tunes with every seed, and adds the results.
func (p *autoProblem) compare(ctx context.Context, env *experiment.Env, r *report.Result, t *report.Table, at, trials int) error {
	random, err := p.random(ctx, env, trials)
	if err != nil {
		return err
	}
	again, test, err := p.refit(ctx, random.best)
	if err != nil {
		return err
	}
	of600, of60 := slices.Min(random.errs), random.expected(trials)
	if change := again/of600 - 1; math.Abs(change) > 1e-6 {
		r.Note("%s: fitted here, the best random configuration has an error %.2g %% above that of the table. Ratios are to the table.", p.name, 100*change)
	}
	plot := r.Plot(p.name, "FALKON on "+p.name, figure.Axis{Label: "trials"}, figure.Axis{Label: "validation rmse"})
	curve := figure.Series{Name: "random, expected", Style: figure.Line}
	for k := 1; k <= trials; k++ {
		curve.X, curve.Y = append(curve.X, float64(k)), append(curve.Y, random.expected(k))
	}
	var ratios []float64
	for rep := range env.Repeats {
		env.Report(at*env.Repeats+rep, len(autoProblems)*env.Repeats, "%s, seed %d", p.name, rep+1)
		watch := experiment.StartWatch()
		s, err := p.search(ctx, env.Derive("auto "+p.name, rep), trials, study.Component{}, study.Component{})
		if err != nil {
			return err
		}
		cpu := watch.CPU()
		fitted, err := p.tuning.Refit(ctx, s.best, nil)
		if err != nil {
			return err
		}
		other, err := p.tuning.Refit(ctx, s.recommended, nil)
		if err != nil {
			return err
		}
		ratio := fitted.Validation / of600
		ratios = append(ratios, ratio)
		t.Add(p.name, p.rows, rep+1, fitted.Validation, of600, ratio, of60, s.theory, fitted.Test[0].Value, test, other.Validation, other.Test[0].Value, s.pruned, cpu)
		plot.Add(s.curve(fmt.Sprintf("ours, seed %d", rep+1)))
	}
	plot.Add(curve).Add(figure.Series{Name: "least of 600", X: []float64{1, float64(trials)}, Y: []float64{of600, of600}, Style: figure.Line})
	verdict := "at most 1.01"
	if mean(ratios) > 1.01 {
		verdict = "more than 1.01"
	}
	r.Note("%s: %.4f times the error of the best of %d random configurations on average over %d seeds, from %.4f to %.4f: %s.", p.name,
		mean(ratios), len(random.errs), env.Repeats, slices.Min(ratios), slices.Max(ratios), verdict)
	return nil
}

// searched is the result of a search.
type searched struct {
	errs   []float64 // of the trials that completed, in order
	at     []int     // their numbers
	theory float64   // error with theory's settings
	pruned int

	best, recommended study.Trial
}

// search makes a study, runs it to its end and returns the result.
func (p *autoProblem) search(ctx context.Context, seed uint64, trials int, proposer, pruner study.Component) (*searched, error) {
	svc := engine.Open(memory.New(), engine.Options{ProposeTimeout: time.Hour})
	defer svc.Close()
	spec := study.Spec{MaxTrials: trials, Seed: seed, Proposer: proposer, Pruner: pruner}
	if _, _, err := p.tuning.Study(ctx, svc, "auto", spec); err != nil {
		return nil, err
	}
	if err := p.run(ctx, svc); err != nil {
		return nil, err
	}
	best, ok, err := p.tuning.Best(ctx, svc, "auto")
	if err != nil {
		return nil, err
	} else if !ok {
		return nil, fmt.Errorf("no trial on %s completed", p.name)
	}
	recommended, err := svc.Best(ctx, "auto")
	if err != nil {
		return nil, err
	}
	s := &searched{best: best, recommended: recommended[0], theory: math.NaN()}
	all, _, err := svc.Trials(ctx, "auto", tuner.Filter{Limit: trials})
	for _, t := range all {
		switch m, ok := t.Outcome.Metric(p.tuning.Objective()); {
		case t.State == study.Pruned:
			s.pruned++
		case ok && t.State == study.Completed:
			s.errs, s.at = append(s.errs, m.Mean()), append(s.at, t.Number)
		}
	}
	if t, ok, _ := autotune.Default(ctx, svc, "auto"); ok {
		m, _ := t.Outcome.Metric(p.tuning.Objective())
		s.theory = m.Mean()
	}
	return s, err
}

// run works on the study to its end.
func (p *autoProblem) run(ctx context.Context, svc tuner.Service) error {
	_, err := runner.Run(ctx, svc, runner.Options{
		Study: "auto", Worker: "bench",
		Func: func(ctx context.Context, t study.Trial, out io.Writer) error {
			err := p.tuning.Trial(ctx, svc, "auto", t, out)
			if stopped := (*autotune.StoppedError)(nil); errors.As(err, &stopped) {
				return fmt.Errorf("%w: %w", runner.ErrPruned, err)
			}
			return err
		},
	})
	return err
}

// refit fits a configuration as a trial would, and as the final fit.
func (p *autoProblem) refit(ctx context.Context, c space.Config) (validation, test float64, err error) {
	svc := engine.Open(memory.New(), engine.Options{})
	defer svc.Close()
	if _, err := svc.CreateStudy(ctx, "auto", study.Create{Spec: p.tuning.Complete(study.Spec{MaxTrials: 1})}); err != nil {
		return 0, 0, err
	}
	if _, err := svc.Enqueue(ctx, "auto", study.Enqueue{Config: c}); err != nil {
		return 0, 0, err
	}
	if err := p.run(ctx, svc); err != nil {
		return 0, 0, err
	}
	best, ok, err := p.tuning.Best(ctx, svc, "auto")
	if err != nil {
		return 0, 0, err
	} else if !ok {
		return 0, 0, fmt.Errorf("%s: %s did not complete", p.name, c)
	}
	f, err := p.tuning.Refit(ctx, best, nil)
	if err != nil {
		return 0, 0, err
	}
	return f.Validation, f.Test[0].Value, nil
}

// curve returns the least error against the number of trials.
func (s *searched) curve(name string) figure.Series {
	c := figure.Series{Name: name, Style: figure.Line}
	least := math.Inf(1)
	for i, e := range s.errs {
		least = min(least, e)
		c.X, c.Y = append(c.X, float64(s.at[i]+1)), append(c.Y, least)
	}
	return c
}
