package bo

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Report returns tables of the existing runs, done now or before. The errors are
// [*SelectionError], [*experiment.ValueError] and [*FileError].
func (c *Comparison) Report() (*report.Result, error) {
	p, err := c.plan()
	if err != nil {
		return nil, err
	}
	r, err := p.read(c.Out)
	if err != nil {
		return nil, err
	}
	out := &report.Result{}
	if len(r.suite) == 0 {
		out.Note("There are no runs yet.")
		return out, nil
	}
	field := func(k Contestant) bool { return k.Kind != Ablation }
	r.ranks(out, "ranks", "Mean rank by regret (1 is best, all on the same problems and seeds). Optimisers with less than a third of the runs of others are under duels only", measured, field)
	if r.noisy() {
		r.ranks(out, "ranks-recommended", "Mean rank by the regret of the recommended configuration. Optimisers without a model for it recommend their best measurement", recommended, field)
		r.ranks(out, "ranks-found", "Mean rank by the best configuration tried, even if the measurements did not show it", found, field)
	}
	if slices.ContainsFunc(p.contestants, func(k Contestant) bool { return k.Slow }) {
		r.ranks(out, "ranks-all-seeds", "Mean rank without the slow optimisers, on all seeds", measured, func(k Contestant) bool { return k.Kind != Ablation && !k.Slow })
	}
	if slices.ContainsFunc(p.contestants, func(k Contestant) bool { return k.Kind == Ablation }) {
		r.ranks(out, "ranks-ablations", "Mean rank of BKB's ablations among themselves", measured, func(k Contestant) bool { return k.Kind == Ablation || k.Kind == Ours })
	}
	r.duels(out)
	r.againstRandom(out)
	r.stuck(out)
	r.coverage(out)
	r.workers(out)
	r.curves(out)
	r.problems(out)
	r.successes(out)
	r.asks(out)
	r.who(out)
	return out, nil
}

// ranks adds a table of mean ranks, with a column for each optimiser.
func (r *results) ranks(out *report.Result, name, title string, by choice, in func(Contestant) bool) {
	var names []string
	for _, k := range r.plan.contestants {
		if in(k) && slices.ContainsFunc(r.suite, func(s *suiteResults) bool { return s.took(k.Name) }) {
			names = append(names, k.Name)
		}
	}
	if len(names) < 2 {
		return
	}
	t := out.Table(name, title, append([]report.Column{{Name: "suite"}, {Name: "trials"}, {Name: "problems"}, {Name: "runs each"}}, regretColumns(names, "%.2f")...)...)
	for _, s := range r.suite {
		for _, n := range r.plan.budgets() {
			here := s.regulars(names, n)
			cells := s.cells(n, here...)
			if len(here) < 2 || len(cells) == 0 {
				continue
			}
			row := []any{s.Name, n, countProblems(cells), len(cells)}
			t.Add(append(row, spread(names, here, s.meanRanks(cells, here, n, by))...)...)
		}
	}
}

// regulars returns those of the names that have at least a third of the runs of n trials
// that any of them has. Optimisers with fewer runs would leave too few common runs to
// compare.
func (s *suiteResults) regulars(names []string, n int) []string {
	runs, most := make([]int, len(names)), 1
	for i, name := range names {
		runs[i] = len(s.cells(n, name))
		most = max(most, runs[i])
	}
	var out []string
	for i, name := range names {
		if 3*runs[i] >= most {
			out = append(out, name)
		}
	}
	return out
}

// noisy reports whether any run has noisy measurements.
func (r *results) noisy() bool {
	for _, s := range r.suite {
		for _, runs := range s.runs {
			for _, run := range runs {
				if slices.ContainsFunc(run.Trials, func(t Trial) bool { return t.OK && t.Value != t.True }) {
					return true
				}
			}
		}
	}
	return false
}

// took reports whether an optimiser has any run of the suite.
func (s *suiteResults) took(name string) bool {
	for _, runs := range s.runs {
		if runs[name] != nil {
			return true
		}
	}
	return false
}

func regretColumns(names []string, format string) []report.Column {
	var out []report.Column
	for _, name := range names {
		out = append(out, report.Column{Name: name, Format: format})
	}
	return out
}

// spread puts the values of some of the names into a row for all of them.
func spread(names, here []string, values []float64) []any {
	row := make([]any, len(names))
	for i, name := range names {
		row[i] = math.NaN()
		if at := slices.Index(here, name); at >= 0 {
			row[i] = values[at]
		}
	}
	return row
}

func countProblems(cells []cell) int {
	n := 0
	for i, c := range cells {
		if i == 0 || c.problem != cells[i-1].problem {
			n++
		}
	}
	return n
}

// significant is the level of the tests.
const significant = 0.05

// duels adds the comparison of the first of ours with each other optimiser, and the
// problems that it lost.
func (r *results) duels(out *report.Result) {
	at := slices.IndexFunc(r.plan.contestants, func(k Contestant) bool { return k.Kind == Ours })
	if at < 0 || len(r.plan.contestants) < 2 {
		return
	}
	we := r.plan.contestants[at].Name
	t := out.Table("duels", fmt.Sprintf("%s against each other optimiser. The table has problems won, tied and lost (signed-rank test over seeds at 5 %%, where fewer than six seeds always tie), single runs, and the test over problems", we),
		report.Column{Name: "suite"}, report.Column{Name: "trials"}, report.Column{Name: "against"}, report.Column{Name: "problems"}, report.Column{Name: "seeds"},
		report.Column{Name: "wins"}, report.Column{Name: "ties"}, report.Column{Name: "losses"},
		report.Column{Name: "runs better"}, report.Column{Name: "equal"}, report.Column{Name: "worse"},
		report.Column{Name: "mean difference", Format: "%+.3f"}, report.Column{Name: "p", Format: "%.3g"})
	lost := out.Table("losses", fmt.Sprintf("Problems that %s lost, with mean differences of regret (of its log10 in suites on that scale)", we),
		report.Column{Name: "problem"}, report.Column{Name: "trials"}, report.Column{Name: "against"}, report.Column{Name: "seeds"},
		report.Column{Name: "mean difference", Format: "%+.3f"}, report.Column{Name: "p", Format: "%.3g"})
	for _, s := range r.suite {
		for _, n := range r.plan.budgets() {
			for _, k := range r.plan.contestants {
				problems, d := s.differences(we, k.Name, n)
				if k.Name == we || len(d) == 0 {
					continue
				}
				t.Add(append([]any{s.Name, n, k.Name}, duel(d)...)...)
				for i, g := range d {
					if p, mean := signedRank(g), means(d)[i]; p < significant && mean > 0 {
						lost.Add(problems[i], n, k.Name, len(g), mean, p)
					}
				}
			}
		}
	}
}

// duel summarises differences of losses, a group for each problem, negative where ours are
// better.
func duel(d [][]float64) []any {
	var won, tied, lost, better, equal, worse, seeds int
	for _, g := range d {
		seeds = max(seeds, len(g))
		for _, v := range g {
			switch {
			case v < 0:
				better++
			case v > 0:
				worse++
			default:
				equal++
			}
		}
		switch mean := means([][]float64{g})[0]; {
		case signedRank(g) >= significant:
			tied++
		case mean < 0:
			won++
		default:
			lost++
		}
	}
	return []any{len(d), seeds, won, tied, lost, better, equal, worse, grandMean(d), signedRank(means(d))}
}

// bootstrapDraws is the number of bootstrap samples of runs.
const bootstrapDraws = 4000

// againstRandom adds the paired interval of each optimiser against random.
func (r *results) againstRandom(out *report.Result) {
	const reference = "random"
	if !slices.ContainsFunc(r.plan.contestants, func(k Contestant) bool { return k.Name == reference }) || len(r.plan.contestants) < 2 {
		return
	}
	t := out.Table("random", "Mean paired difference of normalised regret from random (of its log10 where the scale is log10), with a 95 % bootstrap interval over seeds. Below 0 is better",
		report.Column{Name: "suite"}, report.Column{Name: "trials"}, report.Column{Name: "optimiser"}, report.Column{Name: "scale"}, report.Column{Name: "runs"},
		report.Column{Name: "difference", Format: "%+.3f"}, report.Column{Name: "low", Format: "%+.3f"}, report.Column{Name: "high", Format: "%+.3f"}, report.Column{Name: "verdict"})
	for _, s := range r.suite {
		for _, n := range r.plan.budgets() {
			for _, k := range r.plan.contestants {
				_, d := s.differences(k.Name, reference, n)
				if k.Name == reference || len(d) == 0 {
					continue
				}
				rng := stream.New(stream.Derive(0, "bench bo bootstrap "+s.Name+" "+k.Name, uint64(n)))
				low, high := experiment.Bootstrap(d, bootstrapDraws, rng, grandMean)
				scale := "plain"
				if s.Log {
					scale = "log10"
				}
				t.Add(s.Name, n, k.Name, scale, len(slices.Concat(d...)), grandMean(d), low, high, verdict(d, low, high))
			}
		}
	}
}

// stuck adds the share of runs that are worse than random search, for each class of problems.
func (r *results) stuck(out *report.Result) {
	const reference = "random"
	for _, s := range r.suite {
		names := s.names(r.plan, Ours, Ablation, Peer)
		if len(names) == 0 || !s.took(reference) {
			continue
		}
		t := out.Table("stuck-"+s.Name, s.Title+", share of runs whose regret is above the median of random search",
			append([]report.Column{{Name: "problems"}, {Name: "trials"}}, regretColumns(names, "%.2f")...)...)
		for _, class := range s.classes() {
			for _, n := range r.plan.budgets() {
				values, found := make([]float64, len(names)), false
				for i, name := range names {
					values[i] = s.stuckShare(class, name, reference, n)
					found = found || !math.IsNaN(values[i])
				}
				if found {
					t.Add(append([]any{class, n}, spread(names, names, values)...)...)
				}
			}
		}
	}
}

// instance is the end of a problem's name that tells instances of one class apart.
var instance = regexp.MustCompile(`-[is][0-9]+$`)

// classOf returns the name of a problem without its suite and instance.
func (s *suiteResults) classOf(problem string) string {
	return instance.ReplaceAllString(strings.TrimPrefix(problem, s.Name+"/"), "")
}

// classes returns the classes of the suite's problems, in order.
func (s *suiteResults) classes() []string {
	var out []string
	for _, l := range s.Problems {
		if c := s.classOf(l.Name); !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out
}

// stuckShare returns the share of an optimiser's runs of a class whose regret after n trials
// is above the median of the reference on the same problem, NaN without such runs.
func (s *suiteResults) stuckShare(class, name, reference string, n int) float64 {
	bars := make(map[string][]float64)
	for _, at := range s.cells(n, reference) {
		bars[at.problem] = append(bars[at.problem], s.regret(at, reference, n, measured))
	}
	stuck, of := 0, 0
	for _, at := range s.cells(n, name) {
		if bars[at.problem] == nil || s.classOf(at.problem) != class {
			continue
		}
		if of++; s.regret(at, name, n, measured) > experiment.Quantiles(bars[at.problem], 0.5)[0] {
			stuck++
		}
	}
	if of == 0 {
		return math.NaN()
	}
	return float64(stuck) / float64(of)
}

// verdict describes an interval of differences in words.
func verdict(d [][]float64, low, high float64) string {
	switch {
	case slices.ContainsFunc(d, func(g []float64) bool { return len(g) < 3 }):
		return "too few seeds"
	case high < 0:
		return "better"
	case low > 0:
		return "worse"
	}
	return "no difference"
}

// curves adds regret against the number of trials.
func (r *results) curves(out *report.Result) {
	t := out.Table("curves", "Normalised regret over all problems and seeds of a suite, with median and quartiles",
		report.Column{Name: "suite"}, report.Column{Name: "optimiser"}, report.Column{Name: "trials"}, report.Column{Name: "runs"},
		report.Column{Name: "quartile", Format: "%.3g"}, report.Column{Name: "median", Format: "%.3g"}, report.Column{Name: "upper quartile", Format: "%.3g"})
	for _, s := range r.suite {
		plot := out.Plot(s.Name, s.Title, figure.Axis{Label: "trials", Log: true}, figure.Axis{Label: "normalised regret", Log: true})
		for _, k := range r.plan.contestants {
			series := figure.Series{Name: k.Name, Style: figure.Line}
			for _, n := range steps(r.plan.trials) {
				var v []float64
				for _, at := range s.cells(n, k.Name) {
					v = append(v, s.regret(at, k.Name, n, measured))
				}
				if len(v) == 0 {
					continue
				}
				q := experiment.Quantiles(v, 0.25, 0.5, 0.75)
				t.Add(s.Name, k.Name, n, len(v), q[0], q[1], q[2])
				series.X, series.Y = append(series.X, float64(n)), append(series.Y, q[1])
			}
			if len(series.X) > 0 {
				plot.Add(series)
			}
		}
	}
}

// steps returns the numbers of trials of a curve.
func steps(trials int) []int {
	var out []int
	for _, n := range []int{1, 5, 10, 20, 50, 100, 200, 500, 1000} {
		if n < trials {
			out = append(out, n)
		}
	}
	return append(out, trials)
}

// problems adds the median regret on each problem, with a column for each optimiser.
func (r *results) problems(out *report.Result) {
	for _, s := range r.suite {
		names := s.names(r.plan, Ours, Ablation, Baseline, Peer)
		t := out.Table("problems-"+s.Name, s.Title+", median normalised regret of each problem",
			append([]report.Column{{Name: "problem"}, {Name: "trials"}}, regretColumns(names, "%.3g")...)...)
		for _, l := range s.Problems {
			for _, n := range r.plan.budgets() {
				values, found := make([]float64, len(names)), false
				for i, name := range names {
					var v []float64
					for _, at := range s.cells(n, name) {
						if at.problem == l.Name {
							v = append(v, s.regret(at, name, n, measured))
						}
					}
					values[i] = experiment.Quantiles(v, 0.5)[0]
					found = found || len(v) > 0
				}
				if found {
					t.Add(append([]any{strings.TrimPrefix(l.Name, s.Name+"/"), n}, spread(names, names, values)...)...)
				}
			}
		}
	}
}

// successes adds the share of trials that succeed, in suites where some fail. On a problem
// with limits they are the feasible ones.
func (r *results) successes(out *report.Result) {
	for _, s := range r.suite {
		names := s.names(r.plan, Ours, Ablation, Baseline, Peer)
		var t *report.Table
		for _, l := range s.Problems {
			for _, n := range r.plan.budgets() {
				values, failed := make([]float64, len(names)), false
				for i, name := range names {
					values[i] = s.successShare(l.Name, name, n)
					failed = failed || values[i] < 1
				}
				if !failed {
					continue
				}
				if t == nil {
					t = out.Table("successes-"+s.Name, s.Title+", mean share of trials that succeed",
						append([]report.Column{{Name: "problem"}, {Name: "trials"}}, regretColumns(names, "%.2f")...)...)
				}
				t.Add(append([]any{strings.TrimPrefix(l.Name, s.Name+"/"), n}, spread(names, names, values)...)...)
			}
		}
	}
}

// successShare returns the mean share of an optimiser's first n trials on a problem that
// succeed, NaN without a run.
func (s *suiteResults) successShare(problem, name string, n int) float64 {
	var shares []float64
	for _, at := range s.cells(n, name) {
		trials := s.runs[at][name].Trials
		if at.problem != problem || len(trials) == 0 {
			continue
		}
		trials = trials[:min(n, len(trials))]
		count := 0
		for _, t := range trials {
			if t.OK {
				count++
			}
		}
		shares = append(shares, float64(count)/float64(len(trials)))
	}
	if len(shares) == 0 {
		return math.NaN()
	}
	return means([][]float64{shares})[0]
}

// asks adds the seconds of asks by the number of trials before.
func (r *results) asks(out *report.Result) {
	t := out.Table("asks", "Seconds of an ask by the number of trials before it. Each run gives a mean over a window, and the table has the median and the largest over runs",
		report.Column{Name: "optimiser"}, report.Column{Name: "clock"}, report.Column{Name: "trials"}, report.Column{Name: "runs"},
		report.Column{Name: "median", Unit: "s", Format: "%.3g"}, report.Column{Name: "largest", Unit: "s", Format: "%.3g"})
	for _, k := range r.plan.contestants {
		for _, clock := range []string{"cpu", "wall"} {
			for _, n := range steps(r.plan.trials) {
				if n < 10 {
					continue
				}
				if v := r.askSeconds(k.Name, clock, n); len(v) > 0 {
					q := experiment.Quantiles(v, 0.5, 1)
					t.Add(k.Name, clock, n, len(v), q[0], q[1])
				}
			}
		}
	}
}

// askSeconds returns for each run the mean over the tenth of its asks before trial n.
func (r *results) askSeconds(name, clock string, n int) []float64 {
	var out []float64
	for _, s := range r.suite {
		for _, at := range s.cells(n, name) {
			run := s.runs[at][name]
			if run.Clock != clock || len(run.Trials) < n {
				continue
			}
			sum, window := 0.0, run.Trials[n-max(n/10, 1):n]
			for _, t := range window {
				sum += t.AskSeconds
			}
			out = append(out, sum/float64(len(window)))
		}
	}
	return out
}

// who adds a description of the comparison.
func (r *results) who(out *report.Result) {
	t := out.Table("optimisers", "The optimisers", report.Column{Name: "optimiser"}, report.Column{Name: "kind"}, report.Column{Name: "version"}, report.Column{Name: "runs"}, report.Column{Name: "ended early"}, report.Column{Name: "description"})
	for _, k := range r.plan.contestants {
		var versions []string
		runs, early := 0, 0
		for _, s := range r.suite {
			for _, at := range s.cells(0, k.Name) {
				run := s.runs[at][k.Name]
				runs++
				if run.Ended != "" {
					early++
				}
				if !slices.Contains(versions, run.Version) {
					versions = append(versions, run.Version)
				}
			}
		}
		if runs > 0 {
			slices.Sort(versions)
			t.Add(k.Name, string(k.Kind), strings.Join(versions, ", "), runs, early, k.Title)
		}
		if len(versions) > 1 {
			out.Note("%s was run in %d versions: %s. Run it again with --redo to compare one version.", k.Name, len(versions), strings.Join(versions, ", "))
		}
	}
}
