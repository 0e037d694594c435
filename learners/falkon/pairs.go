package falkon

import (
	"context"
	"sync"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// targets gives Y by row.
type targets interface {
	// source is the source for the operator. Only during a pass of source, at returns
	// the targets from the given row to at least the end of its block. The row must be
	// in use by the pass. It is safe for concurrent use.
	source() kernel.Source
	at(row int) []float64
	// observe calls f with all targets in the order of the rows, part by part, either
	// now or during the next pass.
	observe(f func(row int, y []float64))
}

// targetsOf returns the targets of src. Those of a stream are read with the
// inputs, so that memory does not grow with n.
func targetsOf(src data.Source) targets {
	if m, ok := src.(*data.Memory); ok {
		return resident{m}
	}
	return &pairs{src: src}
}

type resident struct{ *data.Memory }

func (r resident) source() kernel.Source { return r.Memory }
func (r resident) at(row int) []float64  { return r.Targets()[row*r.Outputs():] }

func (r resident) observe(f func(row int, y []float64)) { f(0, r.Targets()) }

// pairs is the inputs of a stream. It keeps the targets of the blocks that a pass holds
// at the time, as many as it has workers.
type pairs struct {
	src data.Source

	mu       sync.Mutex
	held     []heldBlock
	observer func(row int, y []float64)
}

type heldBlock struct {
	row   int
	block *data.Block
}

func (p *pairs) source() kernel.Source { return p }
func (p *pairs) Len() int              { return p.src.Len() }
func (p *pairs) Dim() int              { return p.src.Dim() }

func (p *pairs) observe(f func(row int, y []float64)) { p.observer = f }

func (p *pairs) at(row int) []float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, h := range p.held {
		if i := row - h.row; i >= 0 && i < h.block.X.Len() {
			return h.block.Y[i*p.src.Outputs():]
		}
	}
	return nil
}

func (p *pairs) Open(ctx context.Context) (kernel.Cursor, error) {
	c, err := p.src.OpenPairs(ctx)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = p.held[:0]
	cursor := &pairsCursor{p: p, pairs: c, observer: p.observer}
	p.observer = nil
	return cursor, nil
}

type pairsCursor struct {
	p     *pairs
	pairs data.PairCursor
	at    int

	observer func(row int, y []float64) // or nil
}

func (c *pairsCursor) Next(ctx context.Context, max int, reuse kernel.Rows) (kernel.Rows, error) {
	b, err := c.pairs.Next(ctx, max, c.release(reuse))
	if err != nil {
		return nil, err
	}
	if c.observer != nil {
		c.observer(c.at, b.Y)
	}
	p := c.p
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held = append(p.held, heldBlock{c.at, b})
	c.at += b.X.Len()
	return b.X, nil
}

// release forgets the block that is returned.
func (c *pairsCursor) release(x kernel.Rows) *data.Block {
	if x == nil {
		return nil
	}
	p := c.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, h := range p.held {
		if h.block.X == x {
			last := len(p.held) - 1
			p.held[i] = p.held[last]
			p.held = p.held[:last]
			return h.block
		}
	}
	return nil
}

func (c *pairsCursor) Close() error { return c.pairs.Close() }
