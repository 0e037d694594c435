package papers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

// fig51 is figure 5.1 of Carratino (2020).
var fig51 = experiment.Experiment{
	Name:   "fig5.1",
	Title:  "Accuracy of approximate leverage scores",
	Source: "Carratino (2020), figure 5.1",
	About: `Each sampler chooses a dictionary of M points, which approximates the scores of all n
rows. R-ACC is the approximate score divided by the exact one. The table has its mean
and quantiles over the rows, averaged over the repeats. Times are for choosing the
dictionary. The kernel is Gaussian with σ = 4, and λ = 1e-5, as in Carratino (2020),
which has 70,000 rows of SUSY's 18 features.

susy       the available real events: 10,000, of 8 features
generator  the SUSY-like generator, 18 features
blobs      95 % of 6,000 rows in one cluster, 5 % in 20 far ones; σ = 1, λ = 1e-4:
           how many of the far clusters are without any point of the dictionary,
           and the largest residual k(x, x) − ‖z(x)‖² of the Nyström embedding

Uniform takes as many points as BLESS. So does the first pass of Two-Pass, because the
1/λ points of theory would be more than all rows.`,
	Parts:   []string{"susy", "generator", "blobs"},
	Repeats: 5,
	Measure: accuracyOfScores,
}

// namedSampler is a sampler with its name in tables.
type namedSampler struct {
	name string
	sketch.Sampler
}

// peers returns the samplers of figure 5.1. Those that need a number of points take as many
// as BLESS has.
func peers(points int, lambda float64, workers int) []namedSampler {
	return []namedSampler{
		{"BLESS", sketch.BLESS{Workers: workers}},
		{"BLESS-R", sketch.BLESSR{Workers: workers}},
		{"SQUEAK", sketch.SQUEAK{}},
		{"Recursive-RLS", sketch.RecursiveRLS{Workers: workers}},
		{"Two-Pass", sketch.TwoPass{Uniform: float64(points) * lambda, Workers: workers}},
		{"uniform", sketch.Uniform{Points: points}},
	}
}

// ratios summarises ℓ̃/ℓ over the rows.
type ratios struct{ mean, q5, q25, q50, q75, q95, worst float64 }

func ratiosOf(approximate, exact []float64) ratios {
	v, sum, worst := make([]float64, len(exact)), 0.0, 1.0
	for i, l := range exact {
		v[i] = approximate[i] / l
		sum += v[i]
		worst = max(worst, v[i], 1/v[i])
	}
	q := experiment.Quantiles(v, 0.05, 0.25, 0.5, 0.75, 0.95)
	return ratios{sum / float64(len(v)), q[0], q[1], q[2], q[3], q[4], worst}
}

// meanRatios averages over repeats. The worst is the worst of all.
func meanRatios(all []ratios) ratios {
	var m ratios
	f := 1 / float64(len(all))
	for _, r := range all {
		m.mean += f * r.mean
		m.q5 += f * r.q5
		m.q25 += f * r.q25
		m.q50 += f * r.q50
		m.q75 += f * r.q75
		m.q95 += f * r.q95
		m.worst = max(m.worst, r.worst)
	}
	return m
}

func accuracyOfScores(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	n := env.Pick(400, 5000, 8000)
	if env.Wants("susy") {
		rows, err := susyRows(ctx, env, n)
		var missing *experiment.DataError
		switch {
		case errors.As(err, &missing) && !env.Named("susy"):
			r.Note("susy is left out: %v.", missing)
		case err != nil:
			return r, err
		default:
			if err := accuracyOn(ctx, env, r, "susy", "the real SUSY events, 8 features", rows.Rows()); err != nil {
				return r, err
			}
		}
	}
	if env.Wants("generator") {
		rows, err := generate(ctx, data.SUSYLike{Seed: env.Derive("fig5.1 generator", 0)}, n)
		if err != nil {
			return r, err
		}
		if err := accuracyOn(ctx, env, r, "generator", "the SUSY-like generator, 18 features", rows.Rows()); err != nil {
			return r, err
		}
	}
	if env.Wants("blobs") {
		if err := accuracyOnBlobs(ctx, env, r); err != nil {
			return r, err
		}
	}
	return r, nil
}

// accuracyOn measures on one set of rows.
func accuracyOn(ctx context.Context, env *experiment.Env, r *report.Result, name, what string, x kernel.Rows) error {
	lambda := []float64{1e-3, 1e-5, 1e-5}[env.Scale-experiment.Quick]
	k, err := gaussian(4)
	if err != nil {
		return err
	}
	src, n := kernel.FromRows(x), x.Len()
	env.Report(0, 0, "%s: exact scores of %d rows", name, n)
	watch := experiment.StartWatch()
	exact, err := sketch.LeverageScores(ctx, k, src, lambda)
	if err != nil {
		return err
	}
	exactTime, dEff := watch.CPU(), sum(exact)
	t := r.Table(name, fmt.Sprintf("R-ACC on %s: n = %d, λ = %g, d_eff = %.0f, N_∞ = %.0f, %d repeats; exact scores took %.1f s of CPU",
		what, n, lambda, dEff, float64(n)*slices.Max(exact), env.Repeats, exactTime),
		report.Column{Name: "sampler"}, report.Column{Name: "CPU", Unit: "s", Format: "%.2f"}, report.Column{Name: "M", Format: "%.0f"},
		report.Column{Name: "mean", Format: "%.2f"}, report.Column{Name: "5 %", Format: "%.2f"}, report.Column{Name: "25 %", Format: "%.2f"},
		report.Column{Name: "median", Format: "%.2f"}, report.Column{Name: "75 %", Format: "%.2f"}, report.Column{Name: "95 %", Format: "%.2f"},
		report.Column{Name: "worst factor", Format: "%.1f"})
	first, err := sketch.BLESS{Workers: env.Workers}.Sample(ctx, k, src, lambda, env.Rand("fig5.1 size", 0))
	if err != nil {
		return err
	}
	samplers := peers(first.Len(), lambda, env.Workers)
	for i, s := range samplers {
		var all []ratios
		var times, sizes []float64
		for rep := range env.Repeats {
			env.Report(i*env.Repeats+rep, len(samplers)*env.Repeats, "%s: %s", name, s.name)
			watch := experiment.StartWatch()
			d, err := s.Sample(ctx, k, src, lambda, env.Rand("fig5.1 "+name, rep))
			if err != nil {
				return err
			}
			times, sizes = append(times, watch.CPU()), append(sizes, float64(d.Len()))
			scores, err := d.Scores(ctx, k, src, env.Workers)
			if err != nil {
				return err
			}
			all = append(all, ratiosOf(scores, exact))
		}
		m := meanRatios(all)
		t.Add(s.name, mean(times), mean(sizes), m.mean, m.q5, m.q25, m.q50, m.q75, m.q95, m.worst)
	}
	boxPlot(r, t, name, fmt.Sprintf("R-ACC, n = %d, λ = %g", n, lambda))
	return nil
}

// boxPlot draws the table's quantiles side by side.
func boxPlot(r *report.Result, t *report.Table, name, title string) {
	p := r.Plot(name, title, figure.Axis{Label: ""}, figure.Axis{Label: "approximate / exact score", Log: true})
	x := make([]float64, len(t.Rows))
	for i, row := range t.Rows {
		x[i] = float64(i)
		p.X.Marks = append(p.X.Marks, figure.Mark{At: float64(len(p.X.Marks)), Text: row[0].(string)})
	}
	p.Add(figure.Series{Name: "mean, 5 … 95 %", X: x, Y: t.Float("mean"), Low: t.Float("5 %"), High: t.Float("95 %"), Style: figure.Points})
	p.Add(figure.Series{Name: "median, quartiles", X: x, Y: t.Float("median"), Low: t.Float("25 %"), High: t.Float("75 %"), Style: figure.Points})
}

// accuracyOnBlobs is the clustered case.
func accuracyOnBlobs(ctx context.Context, env *experiment.Env, r *report.Result) error {
	const lambda = 1e-4
	n, repeats := env.Pick(1000, 6000, 6000), env.Pick(2, 10, 20)
	data, err := generate(ctx, hardBlobs{env.Derive("fig5.1 blobs", 0)}, n)
	if err != nil {
		return err
	}
	k, err := gaussian(1)
	if err != nil {
		return err
	}
	x := data.Rows()
	src := kernel.FromRows(x)
	env.Report(0, 0, "blobs: exact scores of %d rows", n)
	exact, err := sketch.LeverageScores(ctx, k, src, lambda)
	if err != nil {
		return err
	}
	far := farBlobs(data.Targets())
	t := r.Table("blobs", fmt.Sprintf("R-ACC on blobs: n = %d of which %d in %d far blobs, λ = %g, d_eff = %.0f, N_∞ = %.0f, %d repeats",
		n, far.rows, len(far.size), lambda, sum(exact), float64(n)*slices.Max(exact), repeats),
		report.Column{Name: "sampler"}, report.Column{Name: "M", Format: "%.0f"}, report.Column{Name: "mean", Format: "%.2f"},
		report.Column{Name: "5 %", Format: "%.2f"}, report.Column{Name: "95 %", Format: "%.2f"}, report.Column{Name: "worst factor", Format: "%.1f"},
		report.Column{Name: "blobs missed", Format: "%.2f"}, report.Column{Name: "at most"}, report.Column{Name: "largest residual", Format: "%.2f"})
	first, err := sketch.BLESS{Workers: env.Workers}.Sample(ctx, k, src, lambda, env.Rand("fig5.1 size", 1))
	if err != nil {
		return err
	}
	samplers := peers(first.Len(), lambda, env.Workers)
	for i, s := range samplers {
		var all []ratios
		var sizes, missed []float64
		residual := 0.0
		for rep := range repeats {
			env.Report(i*repeats+rep, len(samplers)*repeats, "blobs: %s", s.name)
			d, err := s.Sample(ctx, k, src, lambda, env.Rand("fig5.1 blobs", rep))
			if err != nil {
				return err
			}
			scores, err := d.Scores(ctx, k, src, env.Workers)
			if err != nil {
				return err
			}
			left, err := largestResidual(ctx, k, d.Points, src, env.Workers)
			if err != nil {
				return err
			}
			all, sizes = append(all, ratiosOf(scores, exact)), append(sizes, float64(d.Len()))
			missed, residual = append(missed, float64(far.missed(d.Indices))), max(residual, left)
		}
		m := meanRatios(all)
		t.Add(s.name, mean(sizes), m.mean, m.q5, m.q95, m.worst, mean(missed), int(slices.Max(missed)), residual)
	}
	return nil
}

// blobs maps rows to far blobs.
type blobs struct {
	of   []float64
	size map[float64]int // number of rows by far blob, without empty ones
	rows int             // of all of them
}

func farBlobs(of []float64) blobs {
	b := blobs{of: of, size: map[float64]int{}}
	for _, blob := range of {
		if blob > 0 {
			b.size[blob]++
			b.rows++
		}
	}
	return b
}

// missed returns the number of far blobs without any of the given rows.
func (b blobs) missed(rows []int) int {
	seen := map[float64]bool{}
	for _, i := range rows {
		if b.of[i] > 0 {
			seen[b.of[i]] = true
		}
	}
	return len(b.size) - len(seen)
}

// largestResidual returns the largest share of a row's k(x, x) that the Nyström embedding
// by the centres misses.
func largestResidual(ctx context.Context, k kernel.Kernel, centers kernel.Rows, src kernel.Source, workers int) (float64, error) {
	e, err := sketch.NewEmbedding(k, centers, 0, 0)
	if err != nil {
		return math.NaN(), err
	}
	z, residual := make([]float64, src.Len()*e.Rank()), make([]float64, src.Len())
	if err := e.Apply(ctx, z, residual, src, workers); err != nil {
		return math.NaN(), err
	}
	return slices.Max(residual), nil
}

func sum(v []float64) float64 {
	s := 0.0
	for _, x := range v {
		s += x
	}
	return s
}
