//go:build unix

package learners_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/learners/nystrom"
	"github.com/bkbtuner/bkb/learners/sgdrf"
	"github.com/bkbtuner/bkb/sketch"
)

// BenchmarkLearners measures the CPU time of the most expensive steps, as the median of
// all rounds. Where the number of workers can be chosen, it is one. bench/docs/performance.md
// shows how to compare two revisions by running their test binaries in turn.
func BenchmarkLearners(b *testing.B) {
	const n, m = 20000, 1024
	ctx := context.Background()
	train, err := data.Generate[float64](data.SUSYLike{Seed: 1}, 0, n)
	if err != nil {
		b.Fatal(err)
	}
	all, err := data.Load(ctx, train)
	if err != nil {
		b.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	weights := func(m int) []float64 {
		w := make([]float64, m)
		for j := range w {
			w[j] = rng.NormFloat64()
		}
		return w
	}
	k, one := kerneltest.Gaussian(4), learners.Options{Workers: 1}
	phi, err := sketch.NewOrthogonal(k, 18, m, 1)
	if err != nil {
		b.Fatal(err)
	}
	linear, err := learners.LinearIn(phi, weights(m), 1, 18)
	if err != nil {
		b.Fatal(err)
	}
	expansion := func(centers int) learners.Model {
		e, err := learners.NewExpansion(k, all.Rows().Slice(0, centers), weights(centers), 1)
		if err != nil {
			b.Fatal(err)
		}
		return e
	}
	small, err := data.Subset(all, learnerstest.First(1500))
	if err != nil {
		b.Fatal(err)
	}
	out := make([]float64, n)
	predict := func(m learners.Model) func() error {
		return func() error { return m.Predict(ctx, out, all) }
	}
	fit := func(e learners.Estimator, train data.Source) func() error {
		return func() error { _, err := e.Fit(ctx, train, one); return err }
	}
	for _, c := range []struct {
		name string
		run  func() error
	}{
		{"sgdrf/pass", fit(sgdrf.Params{Kernel: k, Features: m, Passes: 1, StepSize: 1}, all)},
		{"sgdrf/predict", predict(linear)},
		{"krr/fit", fit(krr.Params{Kernel: k, Lambda: 1e-5}, small)},
		{"krr/predict", predict(expansion(1500))},
		{"nystrom/fit", fit(nystrom.Params{Kernel: k, Lambda: 1e-6, Centers: 500}, all)},
		{"nystrom/predict", predict(expansion(500))},
		{"falkon/fit", fit(falkon.Params{Kernel: k, Lambda: 1e-6, Centers: 500, Iterations: 10}, all)},
	} {
		b.Run(c.name, func(b *testing.B) {
			var times []float64
			for b.Loop() {
				start := processorTime(b)
				if err := c.run(); err != nil {
					b.Fatal(err)
				}
				times = append(times, 1e3*(processorTime(b)-start).Seconds())
			}
			slices.Sort(times)
			b.ReportMetric(times[len(times)/2], "CPU-ms")
		})
	}
}

// processorTime returns the CPU time of the process.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
