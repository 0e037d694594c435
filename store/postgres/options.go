package postgres

import (
	"cmp"
	"log/slog"
	"time"
)

// Defaults of [Options].
const (
	DefaultConnections = 8
	DefaultSettle      = 10 * time.Second
)

// Options holds the settings of [Open]. The zero Options are the defaults named here.
type Options struct {
	// Connections is the largest number of connections. 0 means the parameter
	// pool_max_conns of the address, or else [DefaultConnections]. A store needs at least
	// 2, and writes in up to 4 at once.
	Connections int

	// Settle is how long a call tries to find out what became of a statement whose connection
	// broke, and how long it waits for a database that does not answer. 0 means [DefaultSettle].
	Settle time.Duration

	// UnsafeNoSync accepts a database that acknowledges writes before they are on disk. It
	// is for temporary data only, and is logged at each start.
	UnsafeNoSync bool

	// Logger receives warnings for the owner of the data. nil discards them.
	Logger *slog.Logger

	tuning tuning
}

// tuning holds settings for tests.
type tuning struct {
	batch   int // most requests in one statement
	writers int // most statements that write at once
	slice   int // records of deleted studies to remove at a time
}

func (o Options) withDefaults() Options {
	o.Settle = cmp.Or(o.Settle, DefaultSettle)
	o.tuning.batch = cmp.Or(o.tuning.batch, maxBatch)
	o.tuning.writers = cmp.Or(o.tuning.writers, maxWriters)
	o.tuning.slice = cmp.Or(o.tuning.slice, cleanSlice)
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}
