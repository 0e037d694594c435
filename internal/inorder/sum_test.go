package inorder

import (
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// parts returns n random parts of m numbers, and their sum in order.
func parts(random *rand.Rand, n, m int) (p [][]float64, sum []float64) {
	sum = make([]float64, m)
	for range n {
		part := make([]float64, m)
		for j := range part {
			part[j] = random.NormFloat64() * float64(int(1)<<random.IntN(40))
			sum[j] += part[j]
		}
		p = append(p, part)
	}
	return p, sum
}

// The sum has the bits of a loop, independent of the workers and of their timing.
func TestSum(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var s Sum
	for range 200 {
		n, m, workers := random.IntN(30), 1+random.IntN(9), 1+random.IntN(5)
		ahead := random.IntN(4)
		p, want := parts(random, n, m)
		total := make([]float64, m)
		total[0] = 7 // from before
		s.Reset(total, ahead)
		var next atomic.Int64
		var group sync.WaitGroup
		for range workers {
			group.Go(func() {
				own := make([]float64, m)
				for {
					k := int(next.Add(1)) - 1
					if k >= n {
						return
					}
					copy(own, p[k])
					var ok bool
					if own, ok = s.Add(k, own); !ok || len(own) != m {
						t.Errorf("part %d: %d numbers back, %t", k, len(own), ok)
					}
				}
			})
		}
		group.Wait()
		if !slices.Equal(total, want) {
			t.Fatalf("%d parts, %d workers, %d ahead: %v, in order %v", n, workers, ahead, total, want)
		}
	}
}

// No more parts wait than allowed, and a waiting worker continues when the slowest has
// added its part. The check runs once the goroutine can go no further.
func TestSumHoldsUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sum
		total := make([]float64, 1)
		s.Reset(total, 2)
		for _, k := range []int{2, 1} {
			if _, ok := s.Add(k, []float64{float64(k)}); !ok {
				t.Fatalf("part %d was not taken", k)
			}
		}
		done := make(chan bool, 1)
		go func() {
			_, ok := s.Add(3, []float64{3})
			done <- ok
		}()
		synctest.Wait()
		select {
		case <-done:
			t.Fatal("a third part waits")
		default:
		}
		if total[0] != 0 {
			t.Fatalf("%g was added out of turn", total[0])
		}
		s.Add(0, []float64{10})
		if !<-done || total[0] != 16 {
			t.Errorf("the total is %g, not 16", total[0])
		}
	})
}

// Waiting workers are released, and the next sum is independent of this one.
func TestSumStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s Sum
		total := make([]float64, 1)
		s.Reset(total, 1)
		s.Add(1, []float64{5})
		done := make(chan bool, 1)
		go func() {
			_, ok := s.Add(2, []float64{1})
			done <- ok
		}()
		synctest.Wait()
		s.Stop()
		if <-done {
			t.Error("added to a sum that was stopped")
		}
		s.Reset(total, 0)
		for k := range 3 {
			if _, ok := s.Add(k, []float64{1}); !ok {
				t.Error("stopped after a reset")
			}
		}
		if total[0] != 3 {
			t.Errorf("the total is %g, not 3", total[0])
		}
	})
}

// TestSumAllocatesNothing checks the steady state, in and out of turn.
func TestSumAllocatesNothing(t *testing.T) {
	var s Sum
	total, a, b := make([]float64, 8), make([]float64, 8), make([]float64, 8)
	if n := testing.AllocsPerRun(100, func() {
		s.Reset(total, 2)
		b, _ = s.Add(1, b)
		a, _ = s.Add(0, a)
		a, _ = s.Add(3, a)
		b, _ = s.Add(2, b)
	}); n != 0 {
		t.Errorf("%g allocations", n)
	}
}
