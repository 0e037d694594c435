package papers

import (
	"context"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/sketch"
)

// fig71 is figure 7.1 of Carratino (2020).
var fig71 = experiment.Experiment{
	Name:   "fig7.1",
	Title:  "Variance starvation of approximate posteriors",
	Source: "Carratino (2020), figure 7.1",
	About: `A function is drawn from a Gaussian process on [0, 1] with kernel exp(−100(x−x')²) and
observed at t ∈ {6, 63, 215} inputs uniform in [0, 0.5], with noise ξ = 0.1 (Carratino
(2020) does not state it). The exact posterior is compared with BKB's (DTC, q̄ = 4),
with the subset of regressors (SoR) on BKB's inducing points, and with Bayesian
regression on as many random Fourier features (RFF) as inducing points. σ̃/σ is given
for the observed part of [0, 1], [0, 0.5], and for the far part, [0.65, 1], as its
least, median and largest value in all draws. "covered" is how often f lies within μ̃ ±
3σ̃. A right posterior covers 99.7 %. A starving one has σ̃/σ near 0 and covers little.`,
	Repeats: 20,
	Measure: variances,
}

// starveNoise is ξ².
const starveNoise = 0.01

// posterior is a mean and a standard deviation at each point of a grid.
type posterior struct {
	name           string
	mean, variance []float64
	points         int
}

func variances(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r, counts := &report.Result{}, []int{6, 63, 215}
	lengthScale := math.Sqrt(1.0 / 200)
	k, err := gaussian(lengthScale)
	if err != nil {
		return nil, err
	}
	grid := unitGrid(401)
	t := r.Table("variances", fmt.Sprintf("σ̃/σ and coverage, %d draws", env.Repeats),
		report.Column{Name: "t"}, report.Column{Name: "posterior"}, report.Column{Name: "points", Format: "%.1f"},
		report.Column{Name: "seen: least", Format: "%.3f"}, report.Column{Name: "seen: median", Format: "%.3f"}, report.Column{Name: "seen: largest", Format: "%.2f"},
		report.Column{Name: "seen: covered", Unit: "%", Format: "%.1f"},
		report.Column{Name: "far: least", Format: "%.3f"}, report.Column{Name: "far: median", Format: "%.3f"}, report.Column{Name: "far: largest", Format: "%.2f"},
		report.Column{Name: "far: covered", Unit: "%", Format: "%.1f"})
	for i, n := range counts {
		sums := map[string]*starving{}
		var names []string
		for rep := range env.Repeats {
			if err := ctx.Err(); err != nil {
				return r, err
			}
			env.Report(i*env.Repeats+rep, len(counts)*env.Repeats, "t = %d", n)
			f := problems.NewDraw(1, lengthScale, env.Derive("fig7.1 draw", rep))
			all, err := posteriors(env, k, f, grid, n, rep)
			if err != nil {
				return r, err
			}
			for _, p := range all {
				if sums[p.name] == nil {
					sums[p.name] = &starving{}
					names = append(names, p.name)
				}
				sums[p.name].add(f, grid, p, all[0])
			}
			if rep == 0 {
				drawPosteriors(r, f, grid, all, n)
			}
		}
		for _, name := range names {
			s := sums[name]
			seen, far := experiment.Quantiles(s.seen.ratio, 0, 0.5, 1), experiment.Quantiles(s.far.ratio, 0, 0.5, 1)
			t.Add(n, name, mean(s.points), seen[0], seen[1], seen[2], s.seen.percent(), far[0], far[1], far[2], s.far.percent())
		}
	}
	return r, nil
}

// unitGrid returns n equidistant points of [0, 1].
func unitGrid(n int) *kernel.Points[float64] {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(i) / float64(n-1)
	}
	return kernel.NewPoints(n, 1, x)
}

// posteriors returns the exact posterior given n observations of f, and then the
// approximate ones, on the grid.
func posteriors(env *experiment.Env, k kernel.Kernel, f *problems.Draw, grid *kernel.Points[float64], n, rep int) ([]posterior, error) {
	rng := env.Rand(fmt.Sprintf("fig7.1 observations %d", n), rep)
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i] = 0.5 * rng.Float64()
		y[i] = f.Value(x[i:i+1]) + math.Sqrt(starveNoise)*rng.NormFloat64()
	}
	data := gp.Data{X: kernel.NewPoints(n, 1, x), Y: y}
	exact, err := gp.NewExact(k, data, gp.Options{NoiseVariance: starveNoise})
	if err != nil {
		return nil, err
	}
	mu, variance, err := exact.Predict(grid)
	if err != nil {
		return nil, err
	}
	out := []posterior{{"exact", mu, variance, n}}
	config := bandit.Config{Kernel: k, NoiseVariance: starveNoise, Seed: env.Derive("fig7.1 bandit", rep), Workers: env.Workers}
	bkb, err := bandit.NewBKB(bandit.BKBConfig{Config: config}, grid)
	if err != nil {
		return nil, err
	}
	for i := range x {
		if err := bkb.Learn(data.X.Slice(i, i+1), y[i:i+1]); err != nil {
			return nil, err
		}
	}
	inducing, _ := bkb.Posterior().Inducing()
	if mu, variance, err = bkb.Posterior().Predict(grid); err != nil {
		return nil, err
	}
	out = append(out, posterior{"BKB", mu, variance, inducing.Len()})
	sor, err := gp.NewSparse(k, inducing, data, gp.SparseOptions{NoiseVariance: starveNoise, Approximation: gp.SoR, Workers: env.Workers})
	if err != nil {
		return nil, err
	}
	if mu, variance, err = sor.Predict(grid); err != nil {
		return nil, err
	}
	out = append(out, posterior{"SoR", mu, variance, inducing.Len()})
	rff, err := fourierPosterior(config, k, data, grid, inducing.Len())
	return append(out, rff), err
}

// fourierPosterior returns the posterior on random Fourier features, an even number of
// them.
func fourierPosterior(config bandit.Config, k kernel.Kernel, data gp.Data, grid kernel.Rows, features int) (posterior, error) {
	features += features % 2
	phi, err := sketch.NewFourier(k, 1, features, config.Seed)
	if err != nil {
		return posterior{}, err
	}
	linear, err := kernel.NewLinear(1)
	if err != nil {
		return posterior{}, err
	}
	mapped := func(x kernel.Rows) (kernel.Rows, error) {
		rows := make([]float64, x.Len()*features)
		return kernel.NewPoints(x.Len(), features, rows), phi.Apply(rows, x)
	}
	x, err := mapped(data.X)
	if err != nil {
		return posterior{}, err
	}
	at, err := mapped(grid)
	if err != nil {
		return posterior{}, err
	}
	p, err := gp.NewExact(linear, gp.Data{X: x, Y: data.Y}, gp.Options{NoiseVariance: config.NoiseVariance})
	if err != nil {
		return posterior{}, err
	}
	mean, variance, err := p.Predict(at)
	return posterior{"RFF", mean, variance, features}, err
}

// starving summarises how a posterior compares with the exact one.
type starving struct {
	points    []float64
	seen, far region
}

// region is a part of [0, 1].
type region struct {
	ratio   []float64 // σ̃/σ
	covered int       // number of points of f within μ̃ ± 3σ̃
}

func (r region) percent() float64 { return 100 * float64(r.covered) / float64(len(r.ratio)) }

func (s *starving) add(f *problems.Draw, grid *kernel.Points[float64], p, exact posterior) {
	s.points = append(s.points, float64(p.points))
	for i := range grid.Len() {
		x := grid.Row(i)
		at := &s.seen
		switch {
		case x[0] > 0.5 && x[0] < 0.65:
			continue
		case x[0] >= 0.65:
			at = &s.far
		}
		deviation := math.Sqrt(p.variance[i])
		at.ratio = append(at.ratio, deviation/math.Sqrt(exact.variance[i]))
		if math.Abs(f.Value(x)-p.mean[i]) <= 3*deviation {
			at.covered++
		}
	}
}

// drawPosteriors draws f and μ̃ ± 3σ̃.
func drawPosteriors(r *report.Result, f *problems.Draw, grid *kernel.Points[float64], all []posterior, n int) {
	x, truth := make([]float64, grid.Len()), make([]float64, grid.Len())
	for i := range x {
		x[i] = grid.Row(i)[0]
		truth[i] = f.Value(grid.Row(i))
	}
	for _, p := range all {
		low, high := make([]float64, len(x)), make([]float64, len(x))
		for i := range x {
			d := 3 * math.Sqrt(p.variance[i])
			low[i], high[i] = p.mean[i]-d, p.mean[i]+d
		}
		plot := r.Plot(fmt.Sprintf("t%d-%s", n, p.name), fmt.Sprintf("%s, t = %d, %d points", p.name, n, p.points), figure.Axis{Label: "x"}, figure.Axis{})
		plot.Add(figure.Series{Name: "mean ± 3 standard deviations", X: x, Low: low, High: high, Style: figure.Band})
		plot.Add(figure.Series{Name: "mean", X: x, Y: p.mean, Style: figure.Line})
		plot.Add(figure.Series{Name: "f", X: x, Y: truth, Style: figure.Line})
	}
}
