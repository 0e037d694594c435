package papers

import (
	"context"
	"math"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/internal/stream"
)

// arena is a bandit problem with all arguments of policies. Rewards of arms, without noise,
// have mean 0 and variance 1.
type arena struct {
	name   string
	env    *problems.Environment
	arms   kernel.Rows
	kernel kernel.Kernel
	noise  float64 // λ = ξ² that policies get
	// measured, if not nil, has for every arm the measured rewards, of which a pull draws
	// one. Otherwise noise is normal.
	measured [][]float64
}

// reward returns the reward of an arm at a step, equal for all policies.
func (a *arena) reward(arm, step int) float64 {
	if a.measured == nil {
		return a.env.Reward(arm, step)
	}
	rng := stream.New(stream.Derive(a.env.Seed, "bench measured", uint64(step)))
	return a.measured[arm][int(rng.Float64()*float64(len(a.measured[arm])))]
}

// config returns the configuration of all policies, with the same kernel, noise and b.
func (a *arena) config(seed uint64, workers int) bandit.Config {
	return bandit.Config{Kernel: a.kernel, NoiseVariance: a.noise, Seed: seed, Workers: workers}
}

// functionArena returns a function on Sobol' points, with normal noise ξ = 0.1.
func functionArena(f problems.Objective, lengthScale float64, arms int, seed uint64) (*arena, error) {
	const noise = 0.1
	env := problems.NewEnvironment(f, arms, noise, seed)
	k, err := kernel.NewMatern52(lengthScale)
	if err != nil {
		return nil, err
	}
	return &arena{name: f.Name(), env: env, arms: kernel.NewPoints(arms, env.Dim, env.Points), kernel: k, noise: noise * noise}, nil
}

// played is the result of a policy.
type played struct {
	regret   []float64 // R_1 … R_T
	simple   float64
	chance   float64 // R_T relative to that of random pulls
	decision bandit.Decision
	cpu      float64
}

// play runs a policy for some steps.
func (a *arena) play(ctx context.Context, p bandit.Policy, steps int) (played, error) {
	account, watch, out := a.env.Account(), experiment.StartWatch(), played{regret: make([]float64, 0, steps)}
	for t := range steps {
		if err := ctx.Err(); err != nil {
			return out, err
		}
		d, err := p.Next()
		if err != nil {
			return out, err
		}
		if err := p.Observe(d.Arm, a.reward(d.Arm, t+1)); err != nil {
			return out, err
		}
		account.Pull(d.Arm)
		out.regret = append(out.regret, account.Cumulative)
		out.decision = d
	}
	out.cpu, out.simple, out.chance = watch.CPU(), account.Simple, account.Relative()
	return out, nil
}

// fitted returns the kernel and the noise variance that maximize the posterior of the
// hyper-parameters given one reward of each of some arms. The kernel is Matérn-5/2 of unit
// amplitude, because rewards are standardised, with one length scale. Noise is all that the
// kernel does not explain, including the measurement error.
func fitted(ctx context.Context, x kernel.Rows, y []float64, workers int) (kernel.Kernel, float64, error) {
	d := x.Dim()
	k, err := kernel.NewMatern52(0.3 * math.Sqrt(float64(d)))
	if err != nil {
		return nil, 0, err
	}
	o := gp.DimensionScaled(d)
	o.Workers = workers
	r, err := gp.Fit(ctx, k, gp.Data{X: x, Y: y}, o)
	if err != nil {
		return nil, 0, err
	}
	return r.Kernel, r.NoiseVariance, nil
}
