package study

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestChanged compares the trials that differ between two snapshots with those that were
// written in between.
func TestChanged(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, 1))
	var s Study
	type shot struct {
		view    *View
		written []int // since the snapshot before
	}
	var shots []shot
	var written []int
	for range 400 {
		for range rng.IntN(8) {
			n := s.trials.n
			if n > 0 && rng.IntN(3) == 0 {
				n = rng.IntN(n)
			}
			s.trials.set(n, Trial{Number: n, Epoch: rng.Int()})
			written = append(written, n)
		}
		shots = append(shots, shot{s.Snapshot(), written})
		written = nil
		from := rng.IntN(len(shots))
		want := []int{}
		for _, later := range shots[from+1:] {
			want = append(want, later.written...)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		if got := slices.Collect(shots[len(shots)-1].view.Changed(shots[from].view)); !slices.Equal(got, want) && len(got)+len(want) > 0 {
			t.Fatalf("seed %d: changed are %v, want %v", seed, got, want)
		}
	}
	if got := slices.Collect(s.Snapshot().Changed(nil)); len(got) != s.Trials() || len(got) < chunkSize {
		t.Errorf("since nothing %d trials changed, of %d", len(got), s.Trials())
	}
}
