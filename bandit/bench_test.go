package bandit_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/problems"
)

// ackley is Ackley-5 on about 20 000 arms, with noise ξ = 0.1.
func ackley(n int, seed uint64) (*problems.Environment, kernel.Rows) {
	env := problems.NewEnvironment(problems.Ackley{Dim: 5, Shift: 1.3}, n, 0.1, seed)
	return env, kernel.NewPoints(n, 5, env.Points)
}

func ackleyConfig() bandit.Config {
	return bandit.Config{Kernel: must(kernel.NewMatern52(0.3)), NoiseVariance: 0.01, Seed: 1}
}

// run plays a policy and records its regret.
func run(tb testing.TB, p bandit.Policy, env *problems.Environment, account *problems.Regret, steps int) {
	for range steps {
		d, err := p.Next()
		if err != nil {
			tb.Fatal(err)
		}
		if err := p.Observe(d.Arm, env.Reward(d.Arm, p.Steps())); err != nil {
			tb.Fatal(err)
		}
		account.Pull(d.Arm)
	}
}

// BenchmarkStep is one step, decision and reward, with 20 000 arms after t steps. Few
// of these steps draw inducing points. ms/step is the mean of all steps from the start,
// those included.
func BenchmarkStep(b *testing.B) {
	env, arms := ackley(20000, 1)
	c := bkbConfig(ackleyConfig())
	scratch := c
	scratch.FromScratch = true
	for _, kind := range []struct {
		name string
		make func() bandit.Policy
		at   []int
	}{
		{"bkb", func() bandit.Policy { return must(bandit.NewBKB(c, arms)) }, []int{100, 1000, 10000}},
		{"bbkb", func() bandit.Policy { return must(bandit.NewBBKB(c, arms)) }, []int{100, 1000, 10000}},
		{"exact", func() bandit.Policy { return must(bandit.NewGPUCB(c.Config, arms)) }, []int{100, 300, 1000}},
		{"scratch", func() bandit.Policy { return must(bandit.NewBKB(scratch, arms)) }, []int{100}},
	} {
		p, account, spent := kind.make(), env.Account(), time.Duration(0)
		for _, t := range kind.at {
			b.Run(fmt.Sprintf("%s/t=%d", kind.name, t), func(b *testing.B) {
				start, steps := time.Now(), max(t-p.Steps(), 0)
				run(b, p, env, account, steps)
				spent += time.Since(start)
				relative, mean, best := account.Relative(), spent.Seconds()*1e3/float64(t), must(p.Best())
				for b.Loop() {
					run(b, p, env, account, 1)
				}
				b.ReportMetric(mean, "ms/step")
				b.ReportMetric(relative, "regret/chance")
				b.ReportMetric(float64(best.InducingPoints), "m")
				b.ReportMetric(best.EffectiveDimension, "d_eff")
			})
		}
	}
}

// BenchmarkBBKB is 400 steps of BBKB on 4000 arms. The ratios compare with BKB from
// scratch, over 3 or BANDIT_SEEDS seeds, in time (≥ 10 is wanted) and regret.
func BenchmarkBBKB(b *testing.B) {
	const steps = 400
	seeds := 3
	if n, _ := strconv.Atoi(os.Getenv("BANDIT_SEEDS")); n > 0 {
		seeds = n
	}
	var fast, slow time.Duration
	var good, bad float64
	for range b.N {
		for seed := range uint64(seeds) {
			env, arms := ackley(4000, seed)
			c := bkbConfig(ackleyConfig())
			c.Seed = seed
			account := env.Account()
			start := time.Now()
			run(b, must(bandit.NewBBKB(c, arms)), env, account, steps)
			fast += time.Since(start)
			good += account.Relative()
			c.FromScratch = true
			account, start = env.Account(), time.Now()
			run(b, must(bandit.NewBKB(c, arms)), env, account, steps)
			slow += time.Since(start)
			bad += account.Relative()
		}
	}
	b.ReportMetric(slow.Seconds()/fast.Seconds(), "scratch/bbkb")
	b.ReportMetric(good/bad, "regret-ratio")
	b.ReportMetric(good/float64(seeds*b.N), "regret/chance")
}

// BenchmarkRegret compares regret with exact GP-UCB over BANDIT_SEEDS seeds.
func BenchmarkRegret(b *testing.B) {
	seeds, _ := strconv.Atoi(os.Getenv("BANDIT_SEEDS"))
	if seeds < 1 {
		b.Skip("set BANDIT_SEEDS to the number of seeds, such as 10")
	}
	for _, problem := range []struct {
		f     problems.Objective
		scale float64
	}{{problems.Branin{}, 0.3}, {problems.NewDraw(2, 0.2, 1), 0.2}, {problems.Hartmann6{}, 0.4}} {
		b.Run(problem.f.Name(), func(b *testing.B) {
			total := map[string]float64{}
			for range b.N {
				for seed := range uint64(seeds) {
					compare(b, problem.f, problem.scale, seed, total)
				}
			}
			for name, r := range total {
				b.ReportMetric(r/total["exact"], name+"/exact")
			}
			b.ReportMetric(total["exact"]/float64(seeds*b.N), "exact/chance")
		})
	}
}

func compare(b *testing.B, f problems.Objective, scale float64, seed uint64, total map[string]float64) {
	env := problems.NewEnvironment(f, 2048, 0.1, seed)
	arms := kernel.NewPoints(2048, env.Dim, env.Points)
	c := bkbConfig(bandit.Config{Kernel: matern(scale), NoiseVariance: 0.01, Seed: seed})
	for name, p := range map[string]bandit.Policy{
		"exact": must(bandit.NewGPUCB(c.Config, arms)), "bkb": must(bandit.NewBKB(c, arms)),
		"bbkb": must(bandit.NewBBKB(c, arms)),
	} {
		account := env.Account()
		run(b, p, env, account, 300)
		total[name] += account.Relative()
	}
}

// BenchmarkWhole is a run of 10 000 steps on 20 000 arms. It takes Ackley-5, and d = 6
// with about 200 inducing points. s/run is the result. quick/late divides the times of
// the last 1000 steps by those of the second 1000.
func BenchmarkWhole(b *testing.B) {
	for _, problem := range []struct {
		name     string
		f        problems.Objective
		scale, c float64
	}{{"ackley-5", problems.Ackley{Dim: 5, Shift: 1.3}, 0.3, 0.15}, {"draw-6", problems.NewDraw(6, 0.5, 1), 0.5, 0.2}} {
		env := problems.NewEnvironment(problem.f, 20000, 0.1, 1)
		arms := kernel.NewPoints(20000, env.Dim, env.Points)
		c := bkbConfig(bandit.Config{Kernel: matern(problem.scale), NoiseVariance: 0.01, Seed: 0, Beta: bandit.Practical{C: problem.c}})
		for name, make := range map[string]func() bandit.Policy{
			"bkb":  func() bandit.Policy { return must(bandit.NewBKB(c, arms)) },
			"bbkb": func() bandit.Policy { return must(bandit.NewBBKB(c, arms)) },
		} {
			b.Run(problem.name+"/"+name, func(b *testing.B) {
				var p bandit.Policy
				var account *problems.Regret
				var early, late time.Duration
				for b.Loop() {
					p, account = make(), env.Account()
					run(b, p, env, account, 1000)
					start := time.Now()
					run(b, p, env, account, 1000)
					early += time.Since(start)
					run(b, p, env, account, 7000)
					start = time.Now()
					run(b, p, env, account, 1000)
					late += time.Since(start)
				}
				b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/run")
				b.ReportMetric(late.Seconds()/early.Seconds(), "late/early")
				b.ReportMetric(float64(must(p.Best()).InducingPoints), "m")
				b.ReportMetric(account.Relative(), "regret/chance")
			})
		}
	}
}
