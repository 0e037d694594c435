package dataset

import (
	"encoding/binary"
	"hash/maphash"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// maxCounted is the number of rows up to which duplicates are counted.
const maxCounted = 1 << 20

// memoryStore keeps the cells of a table in memory. A slice that grows would need several times
// the memory.
type memoryStore struct {
	width  int
	blocks [][]float64 // of whole rows
}

// blockCells is the largest number of cells in a block, unless a row has more.
const blockCells = 1 << 20

func (s *memoryStore) add(row []float64) error {
	last := len(s.blocks) - 1
	if last < 0 || len(s.blocks[last])+len(row) > blockCells {
		s.blocks = append(s.blocks, nil)
		last++
	}
	s.blocks[last] = append(s.blocks[last], row...)
	return nil
}

func (s *memoryStore) finish(t *Table) error {
	p := kernel.NewPoints(t.rows, s.width, slices.Concat(s.blocks...))
	s.blocks = nil
	t.cells, _ = data.NewMemory(p, nil, 0)
	t.report.Duplicates = -1
	if t.rows <= maxCounted {
		t.report.Duplicates = duplicates(p)
	}
	return nil
}

func (s *memoryStore) abort() {}

// duplicates counts rows equal to an earlier one by their hashes, where missing equals missing.
func duplicates(p *kernel.Points[float64]) int {
	seen, seed := make(map[uint64]struct{}, p.Len()), maphash.MakeSeed()
	var row []byte
	for i := range p.Len() {
		row = row[:0]
		for _, v := range p.Row(i) {
			if v != v {
				v = math.NaN() // in one form
			}
			row = binary.LittleEndian.AppendUint64(row, math.Float64bits(v+0))
		}
		seen[maphash.Bytes(seed, row)] = struct{}{}
	}
	return p.Len() - len(seen)
}
