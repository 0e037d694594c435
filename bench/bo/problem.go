package bo

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Problem is something to minimise on a space. Its methods may be called by
// several goroutines at a time.
type Problem interface {
	// Name is unique among all problems, as "bbob/f08-d05-i1": its suite's name, a
	// slash, and what can be the name of a folder.
	Name() string
	// Suite is the name of the [Suite] that it belongs to.
	Suite() string
	// Space is where it is to be minimised.
	Space() *space.Space
	// Evaluate measures c, which is valid in Space, once; rng is for noise only. ok
	// is false where the configuration fails; the value then means nothing.
	Evaluate(c space.Config, rng *rand.Rand) (value float64, ok bool)
	// True is what Evaluate is centred on, +Inf where it fails. Regret is computed
	// from it.
	True(c space.Config) float64
	// Best is the smallest True. Median is the median of True over configurations
	// that are uniform in the unit cube and do not fail; it is larger than Best.
	Best() float64
	Median() float64
}

// Optimiser is what is compared: ask and tell, in this process or another one.
type Optimiser interface {
	// Ask returns the next configuration to evaluate, valid in the space. The error
	// is [ErrEnded] if there is none.
	Ask(ctx context.Context) (space.Config, error)
	// Tell gives the value of a configuration: of the one last asked for, or of one
	// that was never asked for. ok is false where it failed; value is 0 then.
	Tell(ctx context.Context, c space.Config, value float64, ok bool) error
	// Close releases what it holds.
	Close() error
}

// Recommender is an Optimiser that says which configuration to take in the end.
type Recommender interface {
	Optimiser
	// Recommend returns one that was told; ok is false if there is none yet.
	Recommend(ctx context.Context) (c space.Config, ok bool, err error)
}

// Timed is an Optimiser that takes its own time, as one in another process must.
type Timed interface {
	Optimiser
	// AskSeconds is the CPU time of the last Ask and of all Tells since the Ask
	// before it.
	AskSeconds() float64
}

// Contestant makes Optimisers of one kind.
type Contestant struct {
	// Name is what the command line and files call it: letters, digits and
	// hyphens.
	Name string
	Kind Kind
	// Title says in a line what it is, and its settings where they are not the
	// defaults.
	Title string
	// Slow has it run on half the seeds.
	Slow bool
	// New starts one. Errors: [*UnsupportedError], [*MissingError].
	New func(ctx context.Context, s Setup) (Optimiser, error)
	// Version is that of what it runs; "" if it is part of this module. It may
	// start a process to find out. Errors: [*MissingError].
	Version func(ctx context.Context, s Setup) (string, error)

	component *study.Component // of ours; nil for others
}

// Setup is what an Optimiser is started with. Nothing in it tells of the problem
// but its space.
type Setup struct {
	Space  *space.Space
	Seed   uint64
	Trials int    // that are planned
	Python string // the interpreter that has the peers; "": none
}

// Kind is what a Contestant is in the comparison.
type Kind string

// The kinds. Ablations are ours with a part changed, and ranked by themselves.
const (
	Ours     Kind = "ours"
	Ablation Kind = "ablation"
	Baseline Kind = "baseline"
	Peer     Kind = "peer"
)

// Suite is a family of problems that are reported together.
type Suite struct {
	Name   string // "bbob", "bbob-noisy", "classic", "table"
	Title  string
	Source string // paper or data
	// Log says that regrets span orders of magnitude: means are of log10.
	Log bool
	// Problems are listed without reading data.
	Problems []Listed
}

// Listed is a problem that need not be there yet.
type Listed struct {
	Name string // that of the Problem
	Tier Tier   // the least that has it
	// Open makes it; data is the folder of real data, "" if there is none. Errors:
	// [*bench.DataError].
	Open func(data string) (Problem, error)
}

// Tier is how much is compared.
type Tier string

// The tiers, each with all problems of those before it.
const (
	Smoke    Tier = "smoke"    // seconds: shows that it works
	Standard Tier = "standard" // hours: needed to decide
	Full     Tier = "full"     // days: everything
)

// UnsupportedError is returned by contestants that cannot work on a space.
type UnsupportedError struct{ Contestant, Reason string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s does not support it: %s", e.Contestant, e.Reason)
}

// MissingError is returned by contestants whose software is not there.
type MissingError struct{ Contestant, Reason string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not there: %s", e.Contestant, e.Reason)
}
