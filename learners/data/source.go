package data

import (
	"context"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Source has n inputs with c ≥ 0 targets each. The inputs X, n×d, are a kernel.Source for
// operators. The targets Y are n×c, row-major. Every pass gives the same numbers. Sources that
// are also kernel.Resident have X in memory.
type Source interface {
	kernel.Source
	// Outputs returns c.
	Outputs() int
	// OpenPairs starts a pass over inputs and targets at row 0. Passes are independent.
	OpenPairs(ctx context.Context) (PairCursor, error)
}

// Block is some rows of a Source.
type Block struct {
	X kernel.Rows
	Y []float64 // X.Len()×c
}

// PairCursor is one pass over a [Source], for one goroutine at a time.
type PairCursor interface {
	// Next returns the next max rows, or all that are left if they are fewer, or io.EOF
	// if none are left. max ≥ 1. A block stays valid and unchanged until it is passed
	// as reuse, or until Close. reuse is nil or a block that this cursor returned.
	Next(ctx context.Context, max int, reuse *Block) (*Block, error)
	// Close ends the pass.
	Close() error
}
