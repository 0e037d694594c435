package papers

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

// table51 is table 5.1 of Carratino (2020).
var table51 = experiment.Experiment{
	Name:   "table5.1",
	Title:  "Cost of leverage score sampling, counted",
	Source: "Carratino (2020), table 5.1",
	About: `Every evaluation of the kernel that a sampler makes is counted, on rows of the SUSY-like
generator (Gaussian kernel, σ = 4). Each evaluation needs about M operations, so the run
time in the table of Carratino (2020) is evaluations times M. Slopes are by least
squares of logarithms, in n at a fixed λ, and in 1/λ at a fixed n. The table also has
the evaluations of theory, which are n², n/λ (Two-Pass), n·d_eff (Recursive-RLS, SQUEAK)
and d_eff/λ (BLESS, BLESS-R). d_eff itself grows with 1/λ, which the slopes include.
M/d_eff should not depend on λ. SQUEAK adds 64 rows at a time and Recursive-RLS halves
down to 64, so that d_eff is visible.`,
	Repeats: 3,
	Measure: costsOfSamplers,
}

// counted is a kernel that counts its evaluations. It is slow, because it hides the fast
// methods from callers.
type counted struct {
	kernel.Kernel
	n *atomic.Int64
}

func (k counted) Eval(x kernel.Rows, i int, y kernel.Rows, j int) float64 {
	k.n.Add(1)
	return k.Kernel.Eval(x, i, y, j)
}

// exponents are those of table 5.1 for evaluations, n^a λ^−b d_eff^c.
type exponents struct{ n, lambda, dimension float64 }

func costsOfSamplers(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	sizes := [][]int{{500, 1000}, {2000, 4000, 8000, 16000}, {2000, 4000, 8000, 16000, 32000}}[env.Scale-experiment.Quick]
	lambdas := [][]float64{{1e-1, 1e-2}, {1e-1, 3e-2, 1e-2, 3e-3, 1e-3}, {1e-1, 3e-2, 1e-2, 3e-3, 1e-3}}[env.Scale-experiment.Quick]
	fixedN, fixedLambda := env.Pick(500, 2000, 4000), 1e-2
	data, err := generate(ctx, data.SUSYLike{Seed: env.Derive("table5.1", 0)}, max(fixedN, sizes[len(sizes)-1]))
	if err != nil {
		return nil, err
	}
	samplers := []struct {
		namedSampler
		exponents
		exactly string
	}{
		{namedSampler{"exact RLS", sketch.ExactRLS{}}, exponents{2, 0, 0}, "n²"},
		{namedSampler{"Two-Pass", sketch.TwoPass{Workers: env.Workers}}, exponents{1, 1, 0}, "n/λ"},
		{namedSampler{"Recursive-RLS", sketch.RecursiveRLS{Base: 64, Workers: env.Workers}}, exponents{1, 0, 1}, "n·d_eff"},
		{namedSampler{"SQUEAK", sketch.SQUEAK{Block: 64}}, exponents{1, 0, 1}, "n·d_eff"},
		{namedSampler{"BLESS", sketch.BLESS{Workers: env.Workers}}, exponents{0, 1, 1}, "d_eff/λ"},
		{namedSampler{"BLESS-R", sketch.BLESSR{Workers: env.Workers}}, exponents{0, 1, 1}, "d_eff/λ"},
	}
	count := &counter{env: env, rows: data.Rows(), known: map[string][2]float64{}, of: len(samplers)*(len(sizes)+len(lambdas)) + len(lambdas)}
	t := r.Table("counts", fmt.Sprintf("Evaluations of the kernel, means of %d", env.Repeats),
		report.Column{Name: "sampler"}, report.Column{Name: "n"}, report.Column{Name: "λ"}, report.Column{Name: "d_eff", Format: "%.1f"},
		report.Column{Name: "M", Format: "%.1f"}, report.Column{Name: "M/d_eff", Format: "%.2f"}, report.Column{Name: "evaluations", Format: "%.0f"},
		report.Column{Name: "evaluations/theory", Format: "%.2f"})
	slopes := r.Table("slopes", fmt.Sprintf("Slopes of evaluations: in n at λ = %g, in 1/λ at n = %d", fixedLambda, fixedN),
		report.Column{Name: "sampler"}, report.Column{Name: "theory"}, report.Column{Name: "in n", Format: "%.2f"}, report.Column{Name: "theory in n", Format: "%.0f"},
		report.Column{Name: "in 1/λ", Format: "%.2f"}, report.Column{Name: "theory in 1/λ", Format: "%.2f"}, report.Column{Name: "of M in 1/λ", Format: "%.2f"})
	d, err := count.dimensions(ctx, fixedN, lambdas)
	if err != nil {
		return r, err
	}
	growth := slope(inverse(lambdas), d)
	dFixed := d[slices.Index(lambdas, fixedLambda)] // nearly independent of n
	for _, s := range samplers {
		var byN, byLambda, points []float64
		add := func(n int, lambda, dimension float64, show bool) (float64, float64, error) {
			evaluations, m, err := count.sample(ctx, s.namedSampler, n, lambda)
			if err == nil && show {
				say := math.Pow(float64(n), s.n) * math.Pow(lambda, -s.lambda) * math.Pow(dimension, s.dimension)
				t.Add(s.name, n, lambda, dimension, m, m/dimension, evaluations, evaluations/say)
			}
			return evaluations, m, err
		}
		own := sizes
		if s.n > 1 { // n³ operations
			own = own[:2]
		}
		for _, n := range own {
			e, _, err := add(n, fixedLambda, dFixed, true)
			if err != nil {
				return r, err
			}
			byN = append(byN, e)
		}
		for j, lambda := range lambdas {
			e, m, err := add(fixedN, lambda, d[j], lambda != fixedLambda || !slices.Contains(own, fixedN))
			if err != nil {
				return r, err
			}
			byLambda, points = append(byLambda, e), append(points, m)
		}
		slopes.Add(s.name, s.exactly, slope(floats(own), byN), s.n, slope(inverse(lambdas), byLambda), s.lambda+s.dimension*growth, slope(inverse(lambdas), points))
	}
	r.Note("d_eff grows with 1/λ with slope %.2f here; theory's slopes in 1/λ count that in, as far as the evaluations do.", growth)
	return r, nil
}

// counter counts evaluations.
type counter struct {
	env      *experiment.Env
	rows     kernel.Rows
	done, of int
	known    map[string][2]float64 // evaluations and points
}

// dimensions returns the exact effective dimensions of n rows.
func (c *counter) dimensions(ctx context.Context, n int, lambdas []float64) ([]float64, error) {
	k, err := gaussian(4)
	if err != nil {
		return nil, err
	}
	var out []float64
	for _, lambda := range lambdas {
		c.env.Report(c.done, c.of, "d_eff at λ = %g", lambda)
		d, err := sketch.EffectiveDimension(ctx, k, kernel.FromRows(c.rows.Slice(0, n)), lambda)
		if err != nil {
			return nil, err
		}
		out = append(out, d)
		c.done++
	}
	return out, nil
}

// sample returns the evaluations and the points of a sampler, as means of the repeats.
func (c *counter) sample(ctx context.Context, s namedSampler, n int, lambda float64) (evaluations, points float64, err error) {
	k, err := gaussian(4)
	if err != nil {
		return 0, 0, err
	}
	what := fmt.Sprintf("%s, n = %d, λ = %g", s.name, n, lambda)
	c.env.Report(c.done, c.of, "%s", what)
	c.done++
	if known, ok := c.known[what]; ok {
		return known[0], known[1], nil
	}
	repeats := c.env.Repeats
	if _, same := s.Sampler.(sketch.ExactRLS); same { // its evaluations are known
		repeats = 1
	}
	for rep := range repeats {
		slow := counted{k, new(atomic.Int64)}
		d, err := s.Sample(ctx, slow, kernel.FromRows(c.rows.Slice(0, n)), lambda, c.env.Rand("table5.1 "+s.name, rep))
		if err != nil {
			return 0, 0, err
		}
		evaluations += float64(slow.n.Load()) / float64(repeats)
		points += float64(d.Len()) / float64(repeats)
	}
	c.known[what] = [2]float64{evaluations, points}
	return evaluations, points, nil
}

func inverse(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = 1 / x
	}
	return out
}

func floats(v []int) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return out
}
