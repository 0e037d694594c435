package bandit_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func near(t testing.TB, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for i := range got {
		if !(math.Abs(got[i]-want[i]) <= tol*(1+math.Abs(want[i]))) {
			t.Fatalf("%s[%d] = %.15g, want %.15g within %g", what, i, got[i], want[i], tol)
		}
	}
}

func near1(t testing.TB, what string, got, want, tol float64) {
	t.Helper()
	near(t, what, []float64{got}, []float64{want}, tol)
}

// uniform returns n points of [0, 1]^d.
func uniform(seed uint64, n, d int) *kernel.Points[float64] {
	rng := stream.New(seed)
	data := make([]float64, n*d)
	for i := range data {
		data[i] = rng.Float64()
	}
	return kernel.NewPoints(n, d, data)
}

// wavy is a function of about unit variance with one best region.
func wavy(x []float64) float64 {
	v := 0.0
	for c, xc := range x {
		v += math.Sin(5*xc+float64(c)) + 0.5*math.Cos(11*xc)
	}
	return v / math.Sqrt(float64(len(x)))
}

// world is a set of arms with their mean rewards, and noise by the step.
type world struct {
	arms  *kernel.Points[float64]
	value []float64
	best  int
	sd    float64
	seed  uint64
}

func newWorld(seed uint64, n, d int, sd float64) *world {
	w := &world{arms: uniform(seed, n, d), value: make([]float64, n), sd: sd, seed: seed}
	for i := range w.value {
		w.value[i] = wavy(w.arms.Row(i))
		if w.value[i] > w.value[w.best] {
			w.best = i
		}
	}
	return w
}

// reward returns the reward of a pull at a step. Paired runs have equal noise.
func (w *world) reward(arm, step int) float64 {
	rng := stream.New(stream.Derive(w.seed, "noise", uint64(step)))
	return w.value[arm] + w.sd*rng.NormFloat64()
}

// play runs a policy for some steps. It gives each reward at once, or when the batch is
// full, and returns the arms pulled and the regret.
func (w *world) play(t testing.TB, p bandit.Policy, steps int) (arms []int, regret float64) {
	t.Helper()
	for range steps {
		d, err := p.Next()
		if err != nil {
			t.Fatal(err)
		}
		step := p.Steps()
		if err := p.Observe(d.Arm, w.reward(d.Arm, step)); err != nil {
			t.Fatal(err)
		}
		arms = append(arms, d.Arm)
		regret += w.value[w.best] - w.value[d.Arm]
	}
	return arms, regret
}

func matern(l float64) kernel.Kernel { return must(kernel.NewMatern52(l)) }

func basic(k kernel.Kernel, noise float64) bandit.Config {
	return bandit.Config{Kernel: k, NoiseVariance: noise, Seed: 7, Workers: 1}
}

func bkbConfig(c bandit.Config) bandit.BKBConfig { return bandit.BKBConfig{Config: c} }

func seeded(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}
