package papers

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/sketch"
)

// fig53 is figure 5.3 of Carratino (2020).
var fig53 = experiment.Experiment{
	Name:   "fig5.3",
	Title:  "FALKON with centres by BLESS and uniform ones, for many λ",
	Source: "Carratino (2020), figure 5.3",
	About: `Class error after 5 iterations against λ, with M centres by BLESS, weighted, and as many
uniform ones. Carratino (2020) finds BLESS good over a wider range of λ, towards the
small ones. The λ of BLESS is 1e-3 (1e-2 with --quick), which gives M.`,
	Parts:   classProblems,
	Repeats: 3,
	Measure: errorsOfLambdas,
}

func errorsOfLambdas(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	t := r.Table("lambda", "Class error after 5 iterations", report.Column{Name: "data"}, report.Column{Name: "n"}, report.Column{Name: "M", Format: "%.0f"}, report.Column{Name: "λ"},
		report.Column{Name: "BLESS", Format: "%.4f"}, report.Column{Name: "uniform", Format: "%.4f"})
	return r, eachPart(ctx, env, r, classProblems, func(at int, part string) error {
		data, err := classData(ctx, env, part, env.Pick(1000, 20_000, 100_000))
		if err != nil {
			return err
		}
		if err := lambdasOn(ctx, env, r, t, data, at); err != nil {
			return err
		}
		return nil
	})
}

func lambdasOn(ctx context.Context, env *experiment.Env, r *report.Result, t *report.Table, data *classesData, at int) error {
	k, err := gaussian(data.sigma)
	if err != nil {
		return err
	}
	plot := r.Plot("lambda-"+data.name, data.name+": 5 iterations", figure.Axis{Label: "λ", Log: true}, figure.Axis{Label: "class error"})
	bless, uniform := figure.Series{Name: "BLESS"}, figure.Series{Name: "uniform"}
	for i := range 10 {
		lambda := math.Pow(10, float64(-10+i))
		env.Report(at*10+i, len(classProblems)*10, "%s, λ = %g", data.name, lambda)
		var b, u, centers []float64
		for rep := range env.Repeats {
			p := falkon.Params{Kernel: k, Lambda: lambda, SamplerLambda: samplerLambda(env), Iterations: 5}
			m, errs, err := fitBLESS(ctx, env, p, data, rep)
			if err != nil {
				return err
			}
			b, centers = append(b, errs[len(errs)-1]), append(centers, float64(m))
			p.Centers = m
			if errs, err = fitErrors(ctx, env, p, data, rep); err != nil {
				return err
			}
			u = append(u, errs[len(errs)-1])
		}
		mb, _ := meanOf(b)
		mu, _ := meanOf(u)
		m, _ := meanOf(centers)
		t.Add(data.name, data.train.Len(), m, lambda, mb, mu)
		bless.X, bless.Y = append(bless.X, lambda), append(bless.Y, mb)
		uniform.X, uniform.Y = append(uniform.X, lambda), append(uniform.Y, mu)
	}
	plot.Add(bless).Add(uniform)
	r.Note("%s: %s. Within 2 %% of the least error are %s with BLESS, %s with uniform centres.", data.name, data.note, goodRange(bless, uniform), goodRange(uniform, bless))
	return nil
}

// samplerLambda is the λ of BLESS in figures 5.3 to 5.5.
func samplerLambda(env *experiment.Env) float64 {
	if env.Scale == experiment.Quick {
		return 1e-2
	}
	return 1e-3
}

// goodRange returns the range of λ of s whose errors are within 2 % of the least of both.
func goodRange(s, other figure.Series) string {
	least := math.Inf(1)
	for i := range s.Y {
		least = min(least, s.Y[i], other.Y[i])
	}
	low, high := math.NaN(), math.NaN()
	for i, e := range s.Y {
		if e <= 1.02*least {
			if math.IsNaN(low) {
				low = s.X[i]
			}
			high = s.X[i]
		}
	}
	if math.IsNaN(low) {
		return "none"
	}
	return "λ = " + short(low) + " … " + short(high)
}

// fitBLESS is fitErrors with centres by BLESS, and returns how many it has chosen. A model
// may have fewer, because it drops those in the span of the others.
func fitBLESS(ctx context.Context, env *experiment.Env, p falkon.Params, data *classesData, rep int) (centers int, errs []float64, err error) {
	bless := &counting{Sampler: sketch.BLESS{Workers: env.Workers}}
	p.Sampler = bless
	errs, err = fitErrors(ctx, env, p, data, rep)
	return bless.points, errs, err
}

// counting is a sampler that records how many points it chose last.
type counting struct {
	sketch.Sampler
	points int
}

func (c *counting) Sample(ctx context.Context, k kernel.Kernel, src kernel.Source, lambda float64, rng *rand.Rand) (*sketch.Dictionary, error) {
	d, err := c.Sampler.Sample(ctx, k, src, lambda, rng)
	if err == nil {
		c.points = d.Len()
	}
	return d, err
}

// fitErrors fits and returns the class error after every iteration.
func fitErrors(ctx context.Context, env *experiment.Env, e learners.Estimator, data *classesData, rep int) (errs []float64, err error) {
	_, err = e.Fit(ctx, data.train, watching(env, env.Derive("falkon "+data.name, rep), data.test, func(_ int, wrong float64) { errs = append(errs, wrong) }))
	return errs, err
}

// fig54 is figures 5.4 and 5.5 of Carratino (2020).
var fig54 = experiment.Experiment{
	Name:   "fig5.4",
	Title:  "FALKON-BLESS against FALKON with uniform centres, per iteration",
	Source: "Carratino (2020), figures 5.4 and 5.5",
	About: `Class error and area under the ROC curve on the test rows after every iteration, with as
many centres by BLESS as uniform ones, λ = 1e-6 (1e-8 for HIGGS). Carratino (2020) finds
5 iterations with BLESS as good as 20 with uniform centres. "ahead" counts repeats in
which BLESS after 5 iterations is at least as good as uniform after 8. CPU of BLESS
includes choosing the centres.`,
	Parts:   classProblems,
	Repeats: 5,
	Measure: iterationsOfCenters,
}

func iterationsOfCenters(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r := &report.Result{}
	t := r.Table("iterations", "Class error after t iterations", report.Column{Name: "data"}, report.Column{Name: "n"}, report.Column{Name: "centres"}, report.Column{Name: "M", Format: "%.0f"},
		report.Column{Name: "t = 1", Format: "%.4f"}, report.Column{Name: "t = 2", Format: "%.4f"}, report.Column{Name: "t = 3", Format: "%.4f"}, report.Column{Name: "t = 5", Format: "%.4f"},
		report.Column{Name: "t = 8", Format: "%.4f"}, report.Column{Name: "t = 20", Format: "%.4f"}, report.Column{Name: "CPU", Unit: "s", Format: "%.2f"}, report.Column{Name: "ahead"})
	return r, eachPart(ctx, env, r, classProblems, func(at int, part string) error {
		data, err := classData(ctx, env, part, env.Pick(1000, 20_000, 200_000))
		if err != nil {
			return err
		}
		k, err := gaussian(data.sigma)
		if err != nil {
			return err
		}
		lambda := 1e-6
		if part == "higgs" {
			lambda = 1e-8
		}
		p := falkon.Params{Kernel: k, Lambda: lambda, SamplerLambda: samplerLambda(env), Iterations: 20, Tolerance: 1e-12}
		if err := centersOn(ctx, env, r, t, data, p, at); err != nil {
			return err
		}
		return nil
	})
}

func centersOn(ctx context.Context, env *experiment.Env, r *report.Result, t *report.Table, data *classesData, p falkon.Params, at int) error {
	var bless, uniform [20][]float64
	var centers []float64
	var cpu [2]float64
	ahead := 0
	add := func(to *[20][]float64, errs []float64) {
		for i := range to {
			to[i] = append(to[i], errs[min(i, len(errs)-1)])
		}
	}
	for rep := range env.Repeats {
		env.Report(at*env.Repeats+rep, len(classProblems)*env.Repeats, "%s, repeat %d", data.name, rep+1)
		watch := experiment.StartWatch()
		m, b, err := fitBLESS(ctx, env, p, data, rep)
		if err != nil {
			return err
		}
		cpu[0] += watch.CPU() / float64(env.Repeats)
		uniformly := p
		uniformly.Centers, watch = m, experiment.StartWatch()
		u, err := fitErrors(ctx, env, uniformly, data, rep)
		if err != nil {
			return err
		}
		cpu[1] += watch.CPU() / float64(env.Repeats)
		add(&bless, b)
		add(&uniform, u)
		centers = append(centers, float64(m))
		if b[min(4, len(b)-1)] <= u[min(7, len(u)-1)] {
			ahead++
		}
	}
	m, _ := meanOf(centers)
	plot := r.Plot("iterations-"+data.name, data.name, figure.Axis{Label: "iteration"}, figure.Axis{Label: "class error"})
	for i, line := range []struct {
		name string
		errs *[20][]float64
	}{{"BLESS", &bless}, {"uniform", &uniform}} {
		s := figure.Series{Name: line.name}
		for it, e := range line.errs {
			mean, _ := meanOf(e)
			s.X, s.Y = append(s.X, float64(it+1)), append(s.Y, mean)
		}
		plot.Add(s)
		note := "-"
		if i == 0 {
			note = itoa(ahead) + "/" + itoa(env.Repeats)
		}
		t.Add(data.name, data.train.Len(), line.name, m, s.Y[0], s.Y[1], s.Y[2], s.Y[4], s.Y[7], s.Y[19], cpu[i], note)
	}
	b5, _ := meanOf(bless[4])
	u8, _ := meanOf(uniform[7])
	r.Note("%s: BLESS after 5 iterations %.4f, uniform after 8 %.4f; %s.", data.name, b5, u8, data.note)
	return nil
}
