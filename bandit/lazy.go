package bandit

// lazyMax finds the largest of A numbers from known upper bounds, and computes few of
// them. It computes the top of a heap of bounds until that is up to date. Within a
// batch the means stay and the variances shrink, so that an earlier UCB is a bound.
type lazyMax struct {
	key   []float64 // of every arm
	epoch []int     // when it was computed
	now   int
	heap  []int
	fresh int // refreshed since the start, for reports
}

// reset starts with numbers that are up to date. It costs O(A).
func (h *lazyMax) reset(key []float64) {
	h.key, h.now, h.fresh = key, 0, 0
	if len(h.heap) != len(key) {
		h.heap, h.epoch = make([]int, len(key)), make([]int, len(key))
	}
	for i := range h.heap {
		h.heap[i], h.epoch[i] = i, 0
	}
	for i := len(h.heap)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

// stale marks the numbers as possibly smaller.
func (h *lazyMax) stale() { h.now++ }

// top returns the arm with the largest number, the lowest of equals. refresh computes
// the number of an arm. It costs O(log A) for each that is computed.
func (h *lazyMax) top(refresh func(arm int) float64) int {
	for {
		a := h.heap[0]
		if h.epoch[a] == h.now {
			return a
		}
		h.key[a], h.epoch[a] = refresh(a), h.now
		h.fresh++
		h.down(0)
	}
}

// before reports whether arm a comes before arm b in the heap.
func (h *lazyMax) before(a, b int) bool {
	return h.key[a] > h.key[b] || h.key[a] == h.key[b] && a < b
}

func (h *lazyMax) down(i int) {
	for {
		c := 2*i + 1
		if c >= len(h.heap) {
			return
		}
		if c+1 < len(h.heap) && h.before(h.heap[c+1], h.heap[c]) {
			c++
		}
		if !h.before(h.heap[c], h.heap[i]) {
			return
		}
		h.heap[i], h.heap[c] = h.heap[c], h.heap[i]
		i = c
	}
}
