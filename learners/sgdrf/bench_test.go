package sgdrf

import (
	"context"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/sketch"
)

// BenchmarkPass measures a pass of sgdrf with one worker. "×-naive" is its speed
// relative to plain loops over rows, frequencies and coordinates.
func BenchmarkPass(b *testing.B) {
	const n, m, batch = 4000, 1024, 64
	train := must(data.Load(background, must(data.Generate[float64](data.SUSYLike{Seed: 1}, 0, n))))
	for _, workers := range []int{1, 2} {
		name := map[int]string{1: "workers=1", 2: "workers=2"}[workers]
		b.Run(name, func(b *testing.B) {
			p := Params{Kernel: kerneltest.Gaussian(4), Family: sketch.Fourier, Features: m, BatchSize: batch, StepSize: 1, Sampling: minibatch.Cycle, Averaging: None}
			s := must(p.newDescent(background, train, 1, learners.Options{Workers: workers}))
			naive := newNaive(18, m, 4, 1)
			start := time.Now()
			naive.pass(train, batch)
			slow := time.Since(start)
			start = time.Now()
			for b.Loop() {
				must(s.pass(background, train, stream.New(1)))
			}
			fast := time.Since(start) / time.Duration(b.N)
			b.ReportMetric(float64(slow)/float64(fast), "×-naive")
			b.ReportMetric(float64(n)/fast.Seconds(), "rows/s")
		})
	}
}

// naive is the same algorithm in its most obvious form.
type naive struct {
	d, m int
	w    [][]float64 // frequencies
	a    []float64
	step float64
}

func newNaive(d, m int, scale, step float64) *naive {
	rng := rand.New(rand.NewPCG(1, 2))
	s := &naive{d: d, m: m, a: make([]float64, m), step: step}
	for range m / 2 {
		w := make([]float64, d)
		for c := range w {
			w[c] = rng.NormFloat64() / scale
		}
		s.w = append(s.w, w)
	}
	return s
}

func (s *naive) pass(train *data.Memory, batch int) {
	x := train.Rows().(*kernel.Points[float64])
	phi, g := make([]float64, s.m), make([]float64, s.m)
	factor := math.Sqrt(2 / float64(s.m))
	for at := 0; at < x.Len(); at += batch {
		end := min(at+batch, x.Len())
		clear(g)
		for i := at; i < end; i++ {
			f := 0.0
			for j, w := range s.w {
				dot := 0.0
				for c, v := range x.Row(i) {
					dot += w[c] * v
				}
				phi[2*j], phi[2*j+1] = factor*math.Cos(dot), factor*math.Sin(dot)
				f += s.a[2*j]*phi[2*j] + s.a[2*j+1]*phi[2*j+1]
			}
			e := f - train.Targets()[i]
			for j, v := range phi {
				g[j] += e * v
			}
		}
		for j, v := range g {
			s.a[j] -= s.step / float64(end-at) * v
		}
	}
}

// The plain loops of the benchmark are the same algorithm, so they learn as well.
func TestNaiveLearns(t *testing.T) {
	full, _ := susy(t)
	train := must(data.Load(background, must(data.Subset(full, learnerstest.First(1000)))))
	s := newNaive(18, 128, 4, 1)
	for range 5 {
		s.pass(train, 32)
	}
	p := Params{Kernel: kerneltest.Gaussian(4), Family: sketch.Fourier, Features: 128, BatchSize: 32, StepSize: 1, Sampling: minibatch.Cycle, Averaging: None}
	l := fit(t, p, train, learners.Options{})
	norm := func(v []float64) float64 {
		sum := 0.0
		for _, a := range v {
			sum += a * a
		}
		return math.Sqrt(sum)
	}
	if a, b := norm(s.a), norm(l.Weights()); math.Abs(a/b-1) > 0.2 {
		t.Errorf("norms of the weights: %g and %g", a, b)
	}
}

// Memory is O(M·b). The peak of the heap hardly grows while n grows tenfold, with data
// that are generated during the pass. Features of the additional rows would take 70
// MiB. Allocations between a collection and its measurement are noise, about 1 MiB.
func TestMemoryDoesNotGrow(t *testing.T) {
	racetest.Alone(t)
	peak := func(n int) float64 {
		src := must(data.Generate[float32](data.SUSYLike{Seed: 1}, 0, n))
		p := Params{Kernel: kerneltest.Gaussian(4), Features: 256, BatchSize: 64, StepSize: 1, Passes: 1, Chunk: 1024}
		return peakHeap(func() { fit(t, p, src, learners.Options{Workers: 1}) })
	}
	peak(4000)
	small, large := peak(4000), peak(40000)
	t.Logf("peak heap: %.2f MiB for n = 4000, %.2f MiB for 40000", small/(1<<20), large/(1<<20))
	if large > small+4<<20 {
		t.Errorf("the heap grows from %g to %g bytes", small, large)
	}
}

// peakHeap returns the largest additional heap in bytes while f runs, sampled between
// its steps.
func peakHeap(f func()) float64 {
	runtime.GC()
	var before, now runtime.MemStats
	runtime.ReadMemStats(&before)
	ctx, cancel := context.WithCancel(background)
	done := make(chan struct{})
	most := uint64(0)
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			runtime.GC() // counts live objects, not garbage
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
			time.Sleep(time.Millisecond)
		}
	}()
	f()
	cancel()
	<-done
	return float64(most) - float64(before.HeapAlloc)
}
