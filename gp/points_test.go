package gp

import (
	"hash/maphash"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// TestPointsCollide checks that rows with equal hashes stay different points, also in
// forks.
func TestPointsCollide(t *testing.T) {
	x := kernel.NewPoints(4, 2, []float64{1, 2, 3, 4, 5, 6, 7, 8})
	push := func(p *points, i, want int) {
		t.Helper()
		_, key, found := p.find(x, i)
		if found {
			t.Fatalf("row %d is there before it was added", i)
		}
		if at, err := p.push(x, i, key); err != nil || at != want {
			t.Fatalf("push(%d) = %d, %v, want %d", i, at, err, want)
		}
	}
	hash := func(i int) uint64 {
		key, _ := kernel.RowKey(x, i)
		return maphash.String(rowSeed, key)
	}
	p := &points{}
	push(p, 0, 0)
	p.places[hash(1)] = 0 // as if row 0 had the hash of row 1
	push(p, 1, 1)
	p.places[hash(2)] = 1
	fork := p.fork()
	push(fork, 2, 2)
	fork.places[hash(3)] = 2
	push(fork, 3, 3)
	for i := range 4 {
		if at, _, found := fork.find(x, i); !found || at != i {
			t.Errorf("find(%d) = %d, %v", i, at, found)
		}
	}
	if _, _, found := p.find(x, 2); found {
		t.Error("a point of the fork is in its origin")
	}
}
