package falkon

import (
	"context"
	"runtime"
	"sync"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

// weighing is a stream that measures the live heap while it is read.
type weighing struct {
	data.Source
	mu    *sync.Mutex
	calls *int
	peak  *uint64
	every int // calls between measurements
}

func (w weighing) OpenPairs(ctx context.Context) (data.PairCursor, error) {
	c, err := w.Source.OpenPairs(ctx)
	return weighingCursor{c, w}, err
}

type weighingCursor struct {
	data.PairCursor
	w weighing
}

func (c weighingCursor) Next(ctx context.Context, most int, reuse *data.Block) (*data.Block, error) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if *c.w.calls++; *c.w.calls%c.w.every == 0 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC() // objects in pools live for one cycle more
		runtime.ReadMemStats(&m)
		*c.w.peak = max(*c.w.peak, m.HeapAlloc)
	}
	return c.PairCursor.Next(ctx, most, reuse)
}

// peakHeap fits e to n streamed rows and returns the largest live heap beyond that
// before.
func peakHeap(t testing.TB, e learners.Estimator, n int) float64 {
	t.Helper()
	var before runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&before)
	w := weighing{
		Source: must(data.Generate[float32](data.SUSYLike{Seed: 1}, 0, n)),
		mu:     new(sync.Mutex), calls: new(int), peak: new(uint64), every: n / 2000, // as often for any n
	}
	if _, err := e.Fit(background, w, learners.Options{Workers: 2}); err != nil {
		t.Fatal(err)
	}
	return float64(*w.peak) - float64(before.HeapAlloc)
}

// At fixed M, memory does not grow with n. With ten times the rows, the largest live
// heap is less than 3 % larger, for the squared and the logistic loss. The live heap is
// a few matrices of M×M. K_nM would take 160 MB and the targets 640 kB.
func TestMemory(t *testing.T) {
	racetest.Alone(t)
	k := kerneltest.Gaussian(4)
	for name, e := range map[string]learners.Estimator{
		"squared":  Params{Kernel: k, Lambda: 1e-4, Centers: 250, Iterations: 1},
		"logistic": LogisticParams{Params: Params{Kernel: k, Lambda: 1e-4, Centers: 250, Iterations: 1}, Steps: 1},
	} {
		few, many := peakHeap(t, e, 8_000), peakHeap(t, e, 80_000)
		squares := many / (8 * 250 * 250)
		t.Logf("%s: live heap at its largest %.0f kB, with ten times the rows %.0f kB: %.1f matrices of M×M", name, few/1e3, many/1e3, squares)
		if many > 1.03*few {
			t.Errorf("%s: the heap grows by %.0f %%", name, 100*(many/few-1))
		}
		if squares > 8 {
			t.Errorf("%s: %.1f matrices of M×M", name, squares)
		}
	}
}
