package dataset

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// maxCounted is the number of rows up to which duplicates are counted.
const maxCounted = 1 << 20

// memoryStore keeps the cells of a table in memory.
type memoryStore struct {
	width int
	data  []float64
}

func (s *memoryStore) add(row []float64) error {
	s.data = append(s.data, row...)
	return nil
}

func (s *memoryStore) finish(t *Table) error {
	p := kernel.NewPoints(t.rows, s.width, s.data[:len(s.data):len(s.data)])
	t.cells = kernel.FromRows(p)
	t.report.Duplicates = -1
	if t.rows <= maxCounted {
		t.report.Duplicates = duplicates(p)
	}
	return nil
}

func (s *memoryStore) abort() {}

// duplicates counts rows equal to an earlier one, where missing equals missing.
func duplicates(p *kernel.Points[float64]) int {
	first := make(map[uint64]int32, p.Len())
	n := 0
	for i := range p.Len() {
		h := hashRow(p.Row(i))
		for {
			j, taken := first[h]
			if !taken {
				first[h] = int32(i)
				break
			}
			if sameRow(p.Row(i), p.Row(int(j))) {
				n++
				break
			}
			h++
		}
	}
	return n
}

func hashRow(row []float64) uint64 {
	h := uint64(len(row))
	for _, v := range row {
		h = (h ^ math.Float64bits(v+0)) * 0x9e3779b97f4a7c15
		h ^= h >> 29
	}
	return h
}

func sameRow(a, b []float64) bool {
	for c := range a {
		if a[c] != b[c] && (a[c] == a[c] || b[c] == b[c]) {
			return false
		}
	}
	return true
}
