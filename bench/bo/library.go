package bo

import (
	"context"
	"errors"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/sobol"
	"github.com/bkbtuner/bkb/tuner/space"
)

// library is the BKB of package bandit, on the unit cube, with a kernel that is never
// fitted. The tuner's BKB adds the rest.
func library() Contestant {
	return Contestant{
		Name: "bkb-library", Kind: Ablation, Title: "BKB of package bandit on the unit cube: nothing is fitted, no trust region",
		New:     func(_ context.Context, s Setup) (Optimiser, error) { return newBoxed(s) },
		Version: func(context.Context, Setup) (string, error) { return Version(), nil },
	}
}

// boxed is a bandit.Continuous on encoded configurations. The first points are a design,
// whose values determine the unit of rewards.
type boxed struct {
	space  *space.Space
	seed   uint64
	design int
	told   []heard
	policy *bandit.Continuous // nil during the design
	center float64
	spread float64
}

type heard struct {
	x     []float64
	value float64
}

func newBoxed(s Setup) (Optimiser, error) {
	d := s.Space.Dim()
	if d == 0 {
		return nil, &UnsupportedError{Contestant: "bkb-library", Reason: "the space has no parameter to tune"}
	}
	return &boxed{space: s.Space, seed: s.Seed, design: min(max(d+2, 4), 16)}, nil
}

// Ask implements [Optimiser].
func (o *boxed) Ask(context.Context) (space.Config, error) {
	x := make([]float64, o.space.Dim())
	if o.policy == nil {
		sobol.New(len(x), o.seed).At(uint32(len(o.told)), x)
		return o.space.Decode(x)
	}
	next, err := o.policy.Next()
	if err != nil {
		return space.Config{}, err
	}
	return o.space.Decode(next.X)
}

// Tell implements [Optimiser]. A failure counts as the worst value so far.
func (o *boxed) Tell(_ context.Context, c space.Config, value float64, ok bool) error {
	x := make([]float64, o.space.Dim())
	if err := o.space.Encode(c, x); err != nil {
		return err
	}
	if !ok {
		value = 0
		for _, m := range o.told {
			value = max(value, m.value)
		}
	}
	o.told = append(o.told, heard{x, value})
	if o.policy != nil {
		return o.policy.Observe(x, o.reward(value))
	}
	if len(o.told) < o.design {
		return nil
	}
	return o.start()
}

// start makes the policy from the design's values.
func (o *boxed) start() error {
	values := make([]float64, len(o.told))
	for i, m := range o.told {
		values[i] = m.value
	}
	slices.Sort(values)
	o.center = values[len(values)/2]
	if o.spread = (values[len(values)*3/4] - values[len(values)/4]) / 1.35; !(o.spread > 0) {
		o.spread = 1
	}
	d := o.space.Dim()
	k, err := kernel.NewMatern52(0.35 * math.Sqrt(float64(d)))
	if err != nil {
		return err
	}
	o.policy, err = bandit.NewContinuous(bandit.ContinuousConfig{
		BKBConfig: bandit.BKBConfig{Config: bandit.Config{Kernel: k, NoiseVariance: 1e-3, Seed: o.seed}},
		Lo:        make([]float64, d), Hi: slices.Repeat([]float64{1}, d),
	})
	if err != nil {
		return err
	}
	for _, m := range o.told {
		err = errors.Join(err, o.policy.Observe(m.x, o.reward(m.value)))
	}
	return err
}

// reward converts a value to units of the design's spread, where larger is better, within
// ±5.
func (o *boxed) reward(value float64) float64 {
	return min(max((o.center-value)/o.spread, -5), 5)
}

// Close implements [Optimiser].
func (o *boxed) Close() error { return nil }
