package sgdrf

import (
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/sketch"
)

const (
	// tileElements is the size of a tile of features, 256 KiB: they are used
	// twice, and should be in the cache the second time.
	tileElements = 1 << 15
	// waveTiles is how many tiles are under way before their gradients are
	// added up. It bounds memory when b is large.
	waveTiles = 32
)

// gradient computes the gradient of a mini-batch from tiles of its rows, at most
// waveTiles at a time. Tiles, and the order in which they are added up, depend
// on M alone, not on the number of workers.
type gradient struct {
	phi     sketch.FeatureMap
	m, c    int
	rows    int // of a tile
	workers int
	tiles   []tile
	sum     []float64 // M×c
}

// tile is some rows of a mini-batch: Φ, the residuals R = ΦW − Y, ΦᵀR, and ‖R‖².
type tile struct {
	phi, r, g []float64
	loss      float64
	err       error
}

func newGradient(phi sketch.FeatureMap, c, b, workers int) *gradient {
	m := phi.Features()
	g := &gradient{phi: phi, m: m, c: c, workers: workers, sum: make([]float64, m*c)}
	g.rows = min(max(tileElements/m, 8), 256, b)
	g.tiles = make([]tile, min((b+g.rows-1)/g.rows, waveTiles))
	for i := range g.tiles {
		g.tiles[i] = tile{
			phi: make([]float64, g.rows*m),
			r:   make([]float64, g.rows*c),
			g:   make([]float64, m*c),
		}
	}
	return g
}

// at sets g.sum = Φᵀ(Φw − y) for the rows x with targets y, and returns
// ‖Φw − y‖².
func (g *gradient) at(w []float64, x kernel.Rows, y []float64) (loss float64, err error) {
	clear(g.sum)
	n := x.Len()
	for start := 0; start < n; start += g.rows * len(g.tiles) {
		count := min((n-start+g.rows-1)/g.rows, len(g.tiles))
		g.wave(w, x, y, start, count)
		for i := range g.tiles[:count] {
			t := &g.tiles[i]
			if t.err != nil {
				return 0, t.err
			}
			loss += t.loss
			for j, v := range t.g {
				g.sum[j] += v
			}
		}
	}
	return loss, nil
}

// wave computes count tiles from row start on.
func (g *gradient) wave(w []float64, x kernel.Rows, y []float64, start, count int) {
	one := func(i int) {
		a := start + i*g.rows
		z := min(a+g.rows, x.Len())
		g.tiles[i].compute(g, w, x.Slice(a, z), y[a*g.c:z*g.c])
	}
	if g.workers == 1 || count == 1 {
		for i := range count {
			one(i)
		}
		return
	}
	var next atomic.Int64
	var group sync.WaitGroup
	for range min(g.workers, count) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < count; i = int(next.Add(1)) - 1 {
				one(i)
			}
		})
	}
	group.Wait()
}

func (t *tile) compute(g *gradient, w []float64, x kernel.Rows, y []float64) {
	n := x.Len()
	phi, r := t.phi[:n*g.m], t.r[:n*g.c]
	if t.err = g.phi.Apply(phi, x); t.err != nil {
		return
	}
	copy(r, y)
	multiply(false, 1, phi, n, g.m, w, g.c, -1, r)
	t.loss = 0
	for _, v := range r {
		t.loss += v * v
	}
	multiply(true, 1, phi, n, g.m, r, g.c, 0, t.g)
}

// multiply sets dst = alpha·op(Φ)·v + beta·dst, Φ being n×m and v of c columns.
// One column is a job for a matrix-vector product, which packs nothing.
func multiply(trans bool, alpha float64, phi []float64, n, m int, v []float64, c int, beta float64, dst []float64) {
	t, rows, cols := blas.NoTrans, n, m
	if trans {
		t, rows, cols = blas.Trans, m, n
	}
	if c > 1 {
		blocked.Gemm(1, trans, blocked.New(n, m, phi), false, blocked.New(cols, c, v), alpha, beta, blocked.New(rows, c, dst))
		return
	}
	blas64.Gemv(t, alpha, blas64.General{Rows: n, Cols: m, Stride: m, Data: phi},
		blas64.Vector{N: cols, Inc: 1, Data: v}, beta, blas64.Vector{N: rows, Inc: 1, Data: dst})
}
