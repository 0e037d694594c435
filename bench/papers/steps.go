package papers

import (
	"context"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/internal/problems"
)

// steps measures the project's promise about the bandits' speed.
var steps = experiment.Experiment{
	Name:   "steps",
	Title:  "Time of a bandit's steps",
	Source: "ours, Carratino (2020), section 7.1.2",
	About: `A step is a decision and its reward. The problem is Ackley-5 on 20,000 Sobol' points,
noise ξ = 0.1, Matérn-5/2 with ℓ = 0.3, q̄ = 4. The part d6 is Ackley-6 with ℓ = 0.17,
for which m is about 200. "at t" covers the last tenth of the steps up to t, at least
20. It gives the median of a step, and the mean, which includes the steps that draw
inducing points again. "in all" is the mean of all steps up to t, including batches. All
times are CPU times of the process, so that other programs hardly affect them.

bkb, bbkb   10,000 steps      exact    1000 steps of GP-UCB
scratch     Algorithm 5 as printed, inducing points drawn at every step; 200 steps
d6          BKB and BBKB in 6 dimensions, 10,000 steps
amortised   BBKB and BKB from scratch: 400 steps on 4000 arms, 10 seeds`,
	Parts:   []string{"bkb", "bbkb", "exact", "scratch", "d6", "amortised"},
	Measure: timesOfSteps,
}

// pacer times the steps of a policy.
type pacer struct {
	policy bandit.Policy
	arena  *arena
	// account and every have the regret and the CPU seconds of each step so far.
	account *problems.Regret
	every   []float64
	last    bandit.Decision
}

// until plays until t steps are done.
func (p *pacer) until(ctx context.Context, t int, say func(int)) error {
	for len(p.every) < t {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(p.every)%100 == 0 {
			say(len(p.every))
		}
		watch := experiment.StartWatch()
		d, err := p.policy.Next()
		if err != nil {
			return err
		}
		y := p.arena.reward(d.Arm, len(p.every)+1)
		if err := p.policy.Observe(d.Arm, y); err != nil {
			return err
		}
		p.every = append(p.every, watch.CPU())
		p.account.Pull(d.Arm)
		p.last = d
	}
	return nil
}

func timesOfSteps(ctx context.Context, env *experiment.Env) (*report.Result, error) {
	r, arms := &report.Result{}, env.Pick(1000, 20000, 20000)
	five, err := functionArena(problems.Ackley{Dim: 5, Shift: 1.3}, 0.3, arms, env.Derive("steps", 5))
	if err != nil {
		return nil, err
	}
	six, err := functionArena(problems.Ackley{Dim: 6, Shift: 1.3}, 0.17, arms, env.Derive("steps", 6))
	if err != nil {
		return nil, err
	}
	t := r.Table("steps", fmt.Sprintf("CPU time of a step, %d arms", arms),
		report.Column{Name: "policy"}, report.Column{Name: "d"}, report.Column{Name: "t"}, report.Column{Name: "median at t", Unit: "ms", Format: "%.3f"},
		report.Column{Name: "mean at t", Unit: "ms", Format: "%.3f"}, report.Column{Name: "in all", Unit: "ms", Format: "%.3f"},
		report.Column{Name: "whole run", Unit: "s", Format: "%.2f"}, report.Column{Name: "m"}, report.Column{Name: "d_eff", Format: "%.0f"},
		report.Column{Name: "regret/chance", Format: "%.4f"})
	p := r.Plot("steps", fmt.Sprintf("A step, %d arms", arms), figure.Axis{Label: "t", Log: true}, figure.Axis{Label: "median CPU time at t [ms]", Log: true})
	long := [][]int{{100, 200}, {100, 300, 1000, 3000, 10000}, {100, 300, 1000, 3000, 10000}}[env.Scale-experiment.Quick]
	short := [][]int{{100, 200}, {100, 300, 1000}, {100, 300, 1000}}[env.Scale-experiment.Quick]
	few := [][]int{{20, 50}, {50, 100, 200}, {50, 100, 200, 400}}[env.Scale-experiment.Quick]
	at := map[string]map[int]float64{}
	for _, run := range []struct {
		part, policy string
		arena        *arena
		at           []int
	}{
		{"bkb", "BKB", five, long},
		{"bbkb", "BBKB", five, long},
		{"exact", "GP-UCB", five, short},
		{"scratch", "from scratch", five, few},
		{"d6", "BKB", six, long},
		{"d6", "BBKB", six, long},
	} {
		if !env.Wants(run.part) {
			continue
		}
		key := fmt.Sprintf("%s, d = %d", run.policy, run.arena.env.Dim)
		at[key] = map[int]float64{}
		if err := pace(ctx, env, run.policy, run.arena, run.at, t, at[key]); err != nil {
			return r, err
		}
		rows := t.Where("policy", run.policy).Where("d", run.arena.env.Dim)
		p.Add(figure.Series{Name: key, X: rows.Float("t"), Y: rows.Float("median at t")})
		if early, late := at[key][1000], at[key][10000]; early > 0 && late > 0 {
			r.Note("%s: a step at t = 10000 takes %.2f times as long as one at 1000 (medians).", key, late/early)
		}
	}
	if fast, slow := at["BKB, d = 5"][1000], at["GP-UCB, d = 5"][1000]; fast > 0 && slow > 0 {
		r.Note("At t = 1000 a step of exact GP-UCB takes %.1f times as long as one of BKB (medians).", slow/fast)
	}
	if env.Wants("amortised") {
		return r, amortised(ctx, env, r)
	}
	return r, nil
}

// newPolicy returns a policy by its name in tables.
func newPolicy(name string, a *arena, c bandit.Config) (bandit.Policy, error) {
	if name == "from scratch" {
		return bandit.NewBKB(bandit.BKBConfig{Config: c, Sparsity: bandit.Sparsity{FromScratch: true}}, a.arms)
	}
	return contestant(name, a, c)
}

// pace plays a policy and adds a row for each t. It stores medians in at.
func pace(ctx context.Context, env *experiment.Env, policy string, a *arena, steps []int, table *report.Table, at map[int]float64) error {
	made, err := newPolicy(policy, a, a.config(env.Derive("steps policy", 0), env.Workers))
	if err != nil {
		return err
	}
	p := &pacer{policy: made, arena: a, account: a.env.Account()}
	for _, t := range steps {
		if err := p.until(ctx, t, func(now int) {
			env.Report(now, steps[len(steps)-1], "%s on %s", policy, a.name)
		}); err != nil {
			return err
		}
		window := p.every[min(t-20, t-t/10):]
		at[t] = 1e3 * median(window)
		table.Add(policy, a.env.Dim, t, at[t], 1e3*mean(window), 1e3*mean(p.every), sum(p.every),
			p.last.InducingPoints, p.last.EffectiveDimension, p.account.Relative())
	}
	return nil
}

// amortised compares BBKB with BKB from scratch in time and regret.
func amortised(ctx context.Context, env *experiment.Env, r *report.Result) error {
	arms, steps, seeds := env.Pick(500, 4000, 4000), env.Pick(60, 400, 400), env.Pick(2, 10, 10)
	t := r.Table("amortised", fmt.Sprintf("CPU time and regret, %d steps, %d arms, means of %d seeds", steps, arms, seeds),
		report.Column{Name: "policy"}, report.Column{Name: "CPU/step", Unit: "ms", Format: "%.3f"}, report.Column{Name: "regret/chance", Format: "%.4f"}, report.Column{Name: "±", Format: "%.4f"})
	time, regret := map[string][]float64{}, map[string][]float64{}
	policies := []string{"BBKB", "from scratch", "BKB"}
	for seed := range seeds {
		a, err := functionArena(problems.Ackley{Dim: 5, Shift: 1.3}, 0.3, arms, env.Derive("steps amortised", seed))
		if err != nil {
			return err
		}
		for _, name := range policies {
			env.Report(seed, seeds, "%s, amortised", name)
			p, err := newPolicy(name, a, a.config(env.Derive("steps policy", seed), env.Workers))
			if err != nil {
				return err
			}
			one, err := a.play(ctx, p, steps)
			if err != nil {
				return err
			}
			time[name], regret[name] = append(time[name], one.cpu/float64(steps)), append(regret[name], one.chance)
		}
	}
	for _, name := range policies {
		t.Add(name, 1e3*mean(time[name]), mean(regret[name]), deviation(regret[name])/math.Sqrt(float64(seeds)))
	}
	r.Note("BKB from scratch takes %.1f times as long as BBKB, which has %.3f times its regret.",
		mean(time["from scratch"])/mean(time["BBKB"]), mean(regret["BBKB"])/mean(regret["from scratch"]))
	return nil
}
