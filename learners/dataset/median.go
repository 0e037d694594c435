package dataset

import (
	"context"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/learners/data"
)

// selection finds the smallest number of a stream up to which the weights have a given sum,
// in four passes over it and 512 KiB. Each pass determines 16 more bits.
type selection struct {
	sum    float64 // among those that agree with prefix
	prefix uint64  // the leading bits known so far
	bits   int     // how many
	counts []float64
}

// ordered maps numbers to integers in the same order.
func ordered(v float64) uint64 {
	b := math.Float64bits(v)
	if b>>63 == 1 {
		return ^b
	}
	return b | 1<<63
}

func unordered(u uint64) float64 {
	if u>>63 == 1 {
		return math.Float64frombits(u &^ (1 << 63))
	}
	return math.Float64frombits(^u)
}

func (s *selection) add(v, w float64) {
	u := ordered(v)
	if s.bits > 0 && u>>(64-s.bits) != s.prefix {
		return
	}
	s.counts[u>>(48-s.bits)&0xffff] += w
}

// step ends a pass.
func (s *selection) step() {
	found := 0
	for digit, n := range s.counts {
		if n > 0 {
			found = digit // the last one where rounding leaves a rest
			if s.sum <= n {
				break
			}
			s.sum -= n
		}
	}
	s.prefix = s.prefix<<16 | uint64(found)
	s.bits += 16
	clear(s.counts)
}

// medians sets Fill of the given inputs to their medians over the training
// rows, the lower one where there are two.
func (f *fitter) medians(ctx context.Context, inputs []*data.Input) error {
	for some := range slices.Chunk(inputs, 128) { // whose counts take 64 MiB
		found := make([]selection, len(some))
		for i, in := range some {
			found[i] = selection{sum: f.found[in.Position].moments.n / 2, counts: make([]float64, 1<<16)}
		}
		for range 4 {
			err := f.t.scan(ctx, f.rows, func(row int, cells []float64) error {
				for i, in := range some {
					if v := cells[in.Position]; v == v {
						found[i].add(v, f.weight(row))
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
			for i := range found {
				found[i].step()
			}
		}
		for i, in := range some {
			in.Fill = new(unordered(found[i].prefix))
		}
	}
	return nil
}

// moments holds mean and spread of a stream of numbers with weights (Welford, Note on a
// method for calculating corrected sums of squares and products, Technometrics 1962).
type moments struct {
	n        float64 // the sum of the weights
	mean, m2 float64
	min, max float64
}

func (m *moments) add(v, w float64) {
	if m.n == 0 {
		m.min, m.max = v, v
	}
	m.n += w
	m.min, m.max = min(m.min, v), max(m.max, v)
	delta := v - m.mean
	m.mean += w * delta / m.n
	m.m2 += w * delta * (v - m.mean)
}

// addZeros adds zeros with the sum k of their weights.
func (m *moments) addZeros(k float64) {
	if !(k > 0) {
		return
	}
	if m.n == 0 {
		m.min, m.max = 0, 0
	}
	m.min, m.max = min(m.min, 0), max(m.max, 0)
	n := m.n + k
	m.m2 += m.mean * m.mean * m.n * k / n
	m.mean *= m.n / n
	m.n = n
}

func (m *moments) constant() bool { return m.n == 0 || m.min == m.max }

// scale returns the standard deviation, or half the range where squares under-
// or overflow. It is positive unless the numbers are constant.
func (m *moments) scale() float64 {
	s := math.Sqrt(m.m2 / m.n)
	if s > 1e-150 && s <= math.MaxFloat64 {
		return s
	}
	if s = m.max/2 - m.min/2; s > 0 {
		return s
	}
	return m.max - m.min
}

// center returns the mean, or the middle of the range where sums overflow.
func (m *moments) center() float64 {
	if m.mean-m.mean == 0 {
		return min(max(m.mean, m.min), m.max)
	}
	return m.min/2 + m.max/2
}
