package engine

import (
	"context"

	"github.com/bkbtuner/bkb/tuner/engine/actor"
)

// processors shares the processors between the studies. Asks take shares, and preparations
// turns.
type processors struct {
	*turns
	shares *shares
}

func newProcessors(ctx context.Context) *processors { return &processors{newTurns(ctx), newShares()} }

// Share implements [actor.Processors].
func (p *processors) Share() actor.Share { return &share{all: p.shares} }
