package minibatch

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/learnerstest"
)

// numbered is n rows of one coordinate, x_i = y_i = i.
func numbered(t *testing.T, n int) *data.Memory {
	x, y := make([]float64, n), make([]float64, n)
	for i := range x {
		x[i], y[i] = float64(i), float64(i)
	}
	return learnerstest.Memory(t, kernel.NewPoints(n, 1, x), y, 1)
}

// deal returns the targets of the mini-batches of a pass, and their sizes.
func deal(t *testing.T, p Plan, src data.Source, seed uint64) (rows []float64, sizes []int) {
	t.Helper()
	err := p.Pass(context.Background(), src, rand.New(rand.NewPCG(seed, 8)), func(x kernel.Rows, y []float64) error {
		for i := range y {
			if row := x.(*kernel.Points[float64]).Row(i); row[0] != y[i] {
				t.Fatalf("input %v with target %v", row, y[i])
			}
		}
		rows = append(rows, y...)
		sizes = append(sizes, len(y))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return rows, sizes
}

// Every row of a chunk is dealt once in a reshuffled pass, and passes differ.
func TestReshuffle(t *testing.T) {
	train := numbered(t, 103)
	p := Plan{Sampling: Reshuffle, BatchSize: 10, Chunk: 40}
	one, sizes := deal(t, p, train, 1)
	two, _ := deal(t, p, train, 2)
	if want := []int{10, 10, 10, 5, 10, 10, 10, 4, 10, 10, 10, 4}; !slices.Equal(sizes, want) {
		t.Errorf("mini-batches of %v rows", sizes)
	}
	if slices.IsSorted(one) || slices.Equal(one, two) {
		t.Error("not shuffled anew")
	}
	if slices.Max(one[:35]) >= 35 || slices.Min(one[35:69]) < 35 || slices.Max(one[35:69]) >= 69 {
		t.Error("a row of another chunk")
	}
	if slices.Sort(one); !slices.Equal(one, train.Targets()) {
		t.Errorf("dealt %v", one)
	}
}

func TestCycle(t *testing.T) {
	train := numbered(t, 57)
	for _, chunk := range []int{0, 1, 20, 1000} {
		rows, _ := deal(t, Plan{Sampling: Cycle, BatchSize: 8, Chunk: chunk}, train, 3)
		if !slices.Equal(rows, train.Targets()) {
			t.Errorf("chunks of %d: %v", chunk, rows)
		}
	}
}

// With replacement every row of a chunk is equally likely. The test takes χ² over 200
// passes of 20 rows each, with expectation 19 and standard deviation 6.2.
func TestReplacement(t *testing.T) {
	train := numbered(t, 20)
	count := make([]float64, 20)
	for seed := range uint64(200) {
		rows, sizes := deal(t, Plan{Sampling: Replacement, BatchSize: 6}, train, seed)
		if len(rows) != 24 || len(sizes) != 4 {
			t.Fatalf("%d rows in %d mini-batches", len(rows), len(sizes))
		}
		for _, v := range rows {
			count[int(v)]++
		}
	}
	if rows, _ := deal(t, Plan{Sampling: Replacement, BatchSize: 6, Exact: true}, train, 1); len(rows) != 20 {
		t.Errorf("exactly n rows are %d", len(rows))
	}
	chi := 0.0
	for _, c := range count {
		chi += (c - 240) * (c - 240) / 240
	}
	if chi > 50 || chi < 3 {
		t.Errorf("χ² = %g", chi)
	}
}

// A stream deals the same as memory.
func TestStreamed(t *testing.T) {
	train := numbered(t, 103)
	for _, s := range []Sampling{Replacement, Reshuffle, Cycle} {
		p := Plan{Sampling: s, BatchSize: 7, Chunk: 30}
		a, _ := deal(t, p, train, 4)
		if b, _ := deal(t, p, learnerstest.Streamed(train), 4); !slices.Equal(a, b) {
			t.Errorf("%s: %v and %v", s, a, b)
		}
	}
}

// Chunks have 2²⁶ numbers by default, and at least a mini-batch. Their sizes are equal,
// so that none has only a few rows.
func TestChunks(t *testing.T) {
	for _, c := range []struct{ n, d, b, chunk, want int }{
		{1 << 30, 1 << 11, 1000, 0, 1 << 14},
		{1 << 30, 16, 1 << 10, 0, 1 << 8},
		{1 << 27, 0, 1, 0, 2},
		{1<<16 + 1, 1 << 20, 7, 0, 2},
		{100, 10, 7, 0, 1},
		{100, 10, 7, 20, 5},
		{100, 10, 70, 20, 2},
	} {
		p := Plan{BatchSize: c.b, Chunk: c.chunk}
		k := p.chunks(c.n, c.d)
		if k != c.want {
			t.Errorf("%+v: %d", c, k)
		}
		least, most := c.n, 0
		for i := range k {
			size := share(c.n, i+1, k) - share(c.n, i, k)
			least, most = min(least, size), max(most, size)
		}
		if most-least > 1 || share(c.n, k, k) != c.n {
			t.Errorf("%+v: chunks of %d to %d rows", c, least, most)
		}
	}
}

// A source that ends early gives an error with the place.
func TestShortSource(t *testing.T) {
	err := Plan{Sampling: Cycle, BatchSize: 5, Chunk: 10}.Pass(context.Background(), longer{numbered(t, 20)}, nil,
		func(kernel.Rows, []float64) error { return nil })
	var e *kernel.SourceError
	if !errors.As(err, &e) || e.Row != 16 { // the third chunk of 8, 8 and 7 rows is incomplete
		t.Errorf("%v", err)
	}
}

type longer struct{ data.Source }

func (l longer) Len() int { return l.Source.Len() + 3 }
