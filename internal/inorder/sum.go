// Package inorder adds the results of several goroutines in an order that does not depend
// on them. Floating-point sums round to the same bits for any number of workers.
package inorder

import "sync"

// Sum adds partial sums, numbered 0, 1, …, in the order of their numbers.
//
//	worker: part k ──► is it k's turn? ── yes ──► total += part k, and those that wait for it
//	                                   └─ no ───► waits in memory; the worker goes on
//
// A worker waits only when it is too far ahead of the slowest one. [Sum.Reset] sets how many
// parts may wait. Memory is kept between resets, so that in steady state nothing is allocated.
type Sum struct {
	mu      sync.Mutex
	turn    sync.Cond // signals a change of next or stopped
	total   []float64
	next    int         // number of the part whose turn it is
	waiting [][]float64 // part k at k mod len, nil if none waits
	free    [][]float64
	stopped bool
}

// Reset begins a new sum in total, which it clears. At most ahead parts may wait. Use 0 for
// a single worker.
func (s *Sum) Reset(total []float64, ahead int) {
	s.turn.L = &s.mu
	s.total, s.next, s.stopped = total, 0, false
	clear(total)
	s.free = append(s.free, compact(s.waiting)...)
	clear(s.waiting)
	for len(s.waiting) < ahead+1 {
		s.waiting = append(s.waiting, nil)
	}
	s.waiting = s.waiting[:ahead+1]
}

// compact returns the parts that are present.
func compact(parts [][]float64) (there [][]float64) {
	for _, p := range parts {
		if p != nil {
			there = append(there, p)
		}
	}
	return there
}

// Add adds part k, of the length of the total, now or in its turn. It takes the part and
// returns memory of the same length, with arbitrary contents, for the worker's next part.
// If the sum was stopped, it returns false.
func (s *Sum) Add(k int, part []float64) (spare []float64, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k-s.next >= len(s.waiting) && !s.stopped {
		s.turn.Wait()
	}
	if s.stopped {
		return part, false
	}
	if k != s.next {
		s.waiting[k%len(s.waiting)] = part
		return s.spare(), true
	}
	for {
		for j, v := range part {
			s.total[j] += v
		}
		s.next++
		at := s.next % len(s.waiting)
		if s.waiting[at] == nil {
			break
		}
		s.free = append(s.free, part)
		part, s.waiting[at] = s.waiting[at], nil
	}
	s.turn.Broadcast()
	return part, true
}

func (s *Sum) spare() []float64 {
	for n := len(s.free) - 1; n >= 0; n-- {
		p := s.free[n]
		s.free = s.free[:n]
		if cap(p) >= len(s.total) {
			return p[:len(s.total)]
		}
	}
	return make([]float64, len(s.total))
}

// Stop releases workers that wait. The total is then invalid.
func (s *Sum) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	s.turn.Broadcast()
}
