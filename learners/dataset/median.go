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
