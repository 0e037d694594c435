package bandit_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// ackley is Ackley-5 on [−5, 5]^5, optimum at 1.3, over 20 000 arms in the unit
// cube, standardised; noise ξ = 0.1.
func ackley(n int) *world {
	w := &world{arms: uniform(42, n, 5), value: make([]float64, n), sd: 0.1, seed: 42}
	for i := range w.value {
		square, cosine := 0.0, 0.0
		for _, u := range w.arms.Row(i) {
			x := 10*u - 5 - 1.3
			square += x * x
			cosine += math.Cos(2 * math.Pi * x)
		}
		w.value[i] = 20*math.Exp(-0.2*math.Sqrt(square/5)) + math.Exp(cosine/5)
	}
	w.standardise()
	return w
}

// standardise makes the values of mean 0 and variance 1.
func (w *world) standardise() {
	sum, square := 0.0, 0.0
	for _, v := range w.value {
		sum, square = sum+v, square+v*v
	}
	n := float64(len(w.value))
	mean := sum / n
	sd := math.Sqrt(square/n - mean*mean)
	for i, v := range w.value {
		w.value[i] = (v - mean) / sd
		if w.value[i] > w.value[w.best] {
			w.best = i
		}
	}
}

func ackleyConfig() bandit.Config {
	return bandit.Config{Kernel: must(kernel.NewMatern52(0.3)), NoiseVariance: 0.01, Seed: 1}
}

// BenchmarkStep is one step, decision and reward, of 20 000 arms after t steps.
// The reported metrics are the mean step of the way there, and regret relative
// to pulling at random.
func BenchmarkStep(b *testing.B) {
	w := ackley(20000)
	c := bkbConfig(ackleyConfig())
	scratch := c
	scratch.FromScratch = true
	for _, run := range []struct {
		name string
		make func() bandit.Policy
		at   []int
	}{
		{"bkb", func() bandit.Policy { return must(bandit.NewBKB(c, w.arms)) }, []int{100, 1000, 10000}},
		{"bbkb", func() bandit.Policy { return must(bandit.NewBBKB(c, w.arms)) }, []int{100, 1000, 10000}},
		{"exact", func() bandit.Policy { return must(bandit.NewGPUCB(c.Config, w.arms)) }, []int{100, 300}},
		{"scratch", func() bandit.Policy { return must(bandit.NewBKB(scratch, w.arms)) }, []int{100}},
		{"mini", func() bandit.Policy { return must(bandit.NewMiniGPOpt(c.Config, w.arms)) }, []int{100, 1000}},
	} {
		p, regret, spent := run.make(), 0.0, time.Duration(0)
		for _, t := range run.at {
			b.Run(fmt.Sprintf("%s/t=%d", run.name, t), func(b *testing.B) {
				if more := t - p.Steps(); more > 0 {
					start := time.Now()
					_, r := w.play(b, p, more)
					regret += r
					spent += time.Since(start)
				}
				from := p.Steps()
				for b.Loop() {
					w.play(b, p, 1)
				}
				_ = from
				b.ReportMetric(spent.Seconds()*1e6/float64(t), "mean-µs/step")
				b.ReportMetric(regret/w.uniformRegret(t), "regret/uniform")
				b.ReportMetric(float64(must(p.Best()).InducingPoints), "m")
				b.ReportMetric(must(p.Best()).EffectiveDimension, "d_eff")
			})
		}
	}
}
