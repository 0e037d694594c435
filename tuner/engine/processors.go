package engine

import "context"

// processors shares the processors between the studies. Asks take shares, and preparations
// turns.
type processors struct {
	*turns
	shares *shares
}

func newProcessors(ctx context.Context) *processors { return &processors{newTurns(ctx), newShares()} }

// Share implements [Processors].
func (p *processors) Share() Share { return &share{all: p.shares} }
