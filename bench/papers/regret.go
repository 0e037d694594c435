package papers

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/internal/problems"
)

// regret measures the project's promise about the bandits' regret.
var regret = experiment.Experiment{
	Name:   "regret",
	Title:  "Regret of BKB and BBKB over that of exact GP-UCB",
	Source: "ours, Carratino (2020), theorem 21",
	About: `BKB (q̄ = 4), BBKB and exact GP-UCB play the same problem with the same kernel, noise
variance λ and width b = √(0.15·d·log(2t+1)). They are paired, because the seed
determines the arms or their order and the noise for all of them. Ratios are of mean
cumulative regrets R_T over the seeds. The geometric mean is over the problems, with a
95 % bootstrap interval over the seeds of each. The geometric mean should be ≤ 1.10, its
upper end ≤ 1.20, no problem above 1.3, and m far below T.

branin, hartmann6, ackley5
      functions on 4096, 4096 and 20,000 Sobol' points (scrambled by the seed),
      noise ξ = 0.1, λ = ξ², Matérn-5/2 with ℓ = 0.3, 0.4 and 0.3
convolution, dedispersion, gemm
      GPU kernels of which all configurations that run have been timed, 10 to 32
      times each: 4,201, 11,130 and 17,956 arms; reward −log time, standardised,
      one of the real timings for each pull; Matérn-5/2 whose length scale is fitted,
      with λ, to one timing of each of 400 random configurations. gemm runs with
      --full, or when it is named

R_T/chance compares with pulling at random. Simple regret is that of the best arm
pulled. "paired" is the geometric mean of the ratios of single seeds.`,
	Parts:   regretProblems,
	Repeats: 20,
	Measure: regrets,
}

var regretProblems = []string{"branin", "hartmann6", "ackley5", "convolution", "dedispersion", "gemm"}

// tables are the real problems, by the names of their files.
var tables = map[string]string{"convolution": "convolution_milo__A100", "dedispersion": "dedispersion_milo__A4000", "gemm": "gemm__RTX_3090"}

// contest is one problem with all results, by policy.
type contest struct {
	name   string
	make   func(seed uint64) (*arena, error)
	note   string
	played map[string][]played
}

// contestants are the policies. The others are compared with the first.
var contestants = []string{"GP-UCB", "BKB", "BBKB"}

func contestant(name string, a *arena, c bandit.Config) (bandit.Policy, error) {
	switch name {
	case "BKB":
		return bandit.NewBKB(bandit.BKBConfig{Config: c}, a.arms)
	case "BBKB":
		return bandit.NewBBKB(bandit.BKBConfig{Config: c}, a.arms)
	}
	return bandit.NewGPUCB(c, a.arms)
}

func regrets(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r, steps := &report.Result{}, env.Pick(60, 1000, 1000)
	var done []*contest
	defer func() { summariseRegret(env, r, done, steps) }()
	t := r.Table("regret", fmt.Sprintf("Cumulative regret after T = %d steps, paired seeds", steps),
		report.Column{Name: "problem"}, report.Column{Name: "arms"}, report.Column{Name: "seeds"}, report.Column{Name: "policy"}, report.Column{Name: "R_T", Format: "%.1f"}, report.Column{Name: "±", Format: "%.1f"},
		report.Column{Name: "R_T/chance", Format: "%.3f"}, report.Column{Name: "ratio", Format: "%.3f"}, report.Column{Name: "2.5 %", Format: "%.3f"},
		report.Column{Name: "97.5 %", Format: "%.3f"}, report.Column{Name: "paired", Format: "%.3f"}, report.Column{Name: "simple", Format: "%.3f"},
		report.Column{Name: "m", Format: "%.0f"}, report.Column{Name: "m/T", Format: "%.3f"}, report.Column{Name: "d_eff", Format: "%.0f"}, report.Column{Name: "CPU/step", Unit: "ms", Format: "%.2f"})
	for i, part := range regretProblems {
		if !env.Wants(part) || part == "gemm" && env.Scale < experiment.Full && !env.Named(part) {
			continue
		}
		c, err := contestOn(ctx, env, part)
		var missing *experiment.DataError
		if errors.As(err, &missing) && !env.Named(part) {
			r.Note("%s is left out: %v.", part, missing)
			continue
		}
		if err != nil {
			return r, err
		}
		arms, err := c.run(ctx, env, i, steps)
		if c.seeds() == 0 {
			return r, err
		}
		done = append(done, c)
		c.rows(env, t, arms, steps)
		if c.note != "" {
			r.Note("%s: %s.", c.name, c.note)
		}
		c.plot(r, steps)
		if err != nil {
			return r, err
		}
	}
	return r, nil
}

// contestOn prepares a problem.
func contestOn(ctx context.Context, env *experiment.Env, part string) (*contest, error) {
	c := &contest{name: part, played: map[string][]played{}}
	small, large := env.Pick(512, 4096, 4096), env.Pick(512, 20000, 20000)
	function := func(f problems.Objective, lengthScale float64, arms int) {
		c.make = func(seed uint64) (*arena, error) { return functionArena(f, lengthScale, arms, seed) }
	}
	switch part {
	case "branin":
		function(problems.Branin{}, 0.3, small)
	case "hartmann6":
		function(problems.Hartmann6{}, 0.4, small)
	case "ackley5":
		function(problems.Ackley{Dim: 5, Shift: 1.3}, 0.3, large)
	default:
		t, err := readKernelTable(env, tables[part])
		if err != nil {
			return nil, err
		}
		env.Report(0, 0, "%s: fitting a kernel", part)
		k, noise, err := t.fit(ctx, env, part, env.Pick(60, 400, 400))
		if err != nil {
			return nil, err
		}
		c.note = fmt.Sprintf("%d parameters, %d configurations that failed are left out; ℓ = %.2g and λ = %.2g as fitted; timings of one configuration differ with variance %.2g",
			len(t.names), t.failed, k.(interface{ LengthScales() []float64 }).LengthScales()[0], noise, t.noise())
		c.make = func(seed uint64) (*arena, error) { return t.arena(part, k, noise, seed), nil }
	}
	return c, nil
}

// seeds returns the number of seeds with which all policies have played.
func (c *contest) seeds() int { return len(c.played[contestants[len(contestants)-1]]) }

// run plays all policies with all seeds, and returns the number of arms. On an error it
// keeps the seeds with which all policies have played.
func (c *contest) run(ctx context.Context, env *experiment.Env, at, steps int) (arms int, err error) {
	for rep := range env.Repeats {
		a, err := c.make(env.Derive("regret "+c.name, rep))
		if err != nil {
			return arms, err
		}
		arms = a.arms.Len()
		var round []played
		for _, name := range contestants {
			env.Report(at*env.Repeats+rep, len(regretProblems)*env.Repeats, "%s: %s", c.name, name)
			p, err := contestant(name, a, a.config(env.Derive("regret policy", rep), env.Workers))
			if err != nil {
				return arms, err
			}
			one, err := a.play(ctx, p, steps)
			if err != nil {
				return arms, err
			}
			round = append(round, one)
		}
		for i, name := range contestants {
			c.played[name] = append(c.played[name], round[i])
		}
	}
	return arms, nil
}

// finals returns a number of each of a policy's runs.
func (c *contest) finals(policy string, of func(played) float64) []float64 {
	var out []float64
	for _, p := range c.played[policy] {
		out = append(out, of(p))
	}
	return out
}

// total is R_T.
func total(p played) float64 { return p.regret[len(p.regret)-1] }

// ratio returns the ratio of a policy's mean regret to that of the first, for the given
// seeds. With nil it uses all seeds, once each.
func (c *contest) ratio(policy string, seeds []int) float64 {
	mine, first := 0.0, 0.0
	add := func(i int) {
		mine += total(c.played[policy][i])
		first += total(c.played[contestants[0]][i])
	}
	for i := range c.played[policy] {
		if seeds == nil {
			add(i)
		} else {
			add(seeds[i])
		}
	}
	return mine / first
}

// geometric returns the geometric mean of the ratios over problems with its 95 % interval.
// Seeds are resampled within each problem, and pairs stay together.
func geometric(env *experiment.Env, done []*contest, policy string) (value, low, high float64) {
	rng := env.Rand("regret bootstrap "+policy, 0)
	groups := make([][]float64, len(done))
	for g, c := range done {
		for i := range c.played[policy] {
			groups[g] = append(groups[g], float64(i))
		}
	}
	statistic := func(seeds [][]float64) float64 {
		s := 0.0
		for g, c := range done {
			at := make([]int, len(seeds[g]))
			for i, v := range seeds[g] {
				at[i] = int(v)
			}
			s += math.Log(c.ratio(policy, at)) / float64(len(done))
		}
		return math.Exp(s)
	}
	low, high = experiment.Bootstrap(groups, 4000, rng, statistic)
	return statistic(groups), low, high
}

// rows adds the problem to the table.
func (c *contest) rows(env *experiment.Env, t *report.Table, arms, steps int) {
	for _, name := range contestants {
		all := c.finals(name, total)
		ratio, low, high, paired := 1.0, math.NaN(), math.NaN(), math.NaN()
		if name != contestants[0] {
			ratio, low, high = geometric(env, []*contest{c}, name)
			paired = math.Exp(mean(logRatios(all, c.finals(contestants[0], total))))
		}
		m := mean(c.finals(name, func(p played) float64 { return float64(p.decision.InducingPoints) }))
		t.Add(c.name, arms, len(all), name, mean(all), deviation(all)/math.Sqrt(float64(len(all))),
			mean(c.finals(name, func(p played) float64 { return p.chance })), ratio, low, high, paired,
			mean(c.finals(name, func(p played) float64 { return p.simple })), m, m/float64(steps),
			mean(c.finals(name, func(p played) float64 { return p.decision.EffectiveDimension })),
			1e3*mean(c.finals(name, func(p played) float64 { return p.cpu }))/float64(steps))
	}
}

// plot draws mean regret against t with its standard error.
func (c *contest) plot(r *report.Result, steps int) {
	p := r.Plot(c.name, fmt.Sprintf("%s, %d seeds", c.name, len(c.played[contestants[0]])), figure.Axis{Label: "t"}, figure.Axis{Label: "cumulative regret"})
	for _, name := range contestants {
		var s figure.Series
		s.Name = name
		for t := max(1, steps/25); t <= steps; t += max(1, steps/25) {
			at := c.finals(name, func(p played) float64 { return p.regret[t-1] })
			half := deviation(at) / math.Sqrt(float64(len(at)))
			s.X, s.Y = append(s.X, float64(t)), append(s.Y, mean(at))
			s.Low, s.High = append(s.Low, mean(at)-half), append(s.High, mean(at)+half)
		}
		p.Add(s)
	}
}

// summariseRegret adds the geometric means and their interpretation.
func summariseRegret(env *experiment.Env, r *report.Result, done []*contest, steps int) {
	if len(done) == 0 {
		return
	}
	t := r.Table("summary", fmt.Sprintf("Ratio of regret to exact GP-UCB's over %d problems, T = %d", len(done), steps),
		report.Column{Name: "policy"}, report.Column{Name: "geometric mean", Format: "%.3f"}, report.Column{Name: "2.5 %", Format: "%.3f"},
		report.Column{Name: "97.5 %", Format: "%.3f"}, report.Column{Name: "largest of a problem", Format: "%.3f"}, report.Column{Name: "as required"})
	for _, name := range contestants[1:] {
		value, low, high := geometric(env, done, name)
		var all []float64
		for _, c := range done {
			all = append(all, c.ratio(name, nil))
		}
		worst, verdict := slices.Max(all), "yes"
		if value > 1.10 || high > 1.20 || worst > 1.3 {
			verdict = "no"
		}
		t.Add(name, value, low, high, worst, verdict)
	}
}
