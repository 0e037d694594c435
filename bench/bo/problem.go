package bo

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// Problem is a function to minimize on a space. Its methods may be called by several
// goroutines at a time.
type Problem interface {
	// Name is unique among all problems, such as "bbob/f08-d05-i1". It is its suite's name,
	// a slash, and a valid directory name.
	Name() string
	// Suite is the name of its [Suite].
	Suite() string
	// Space is the search space.
	Space() *space.Space
	// Evaluate measures c, which is valid in Space, once. The generator rng is for noise
	// only. If the configuration fails, ok is false and the value has no meaning.
	Evaluate(c space.Config, rng *rand.Rand) (value float64, ok bool)
	// True is the centre of Evaluate's values, +Inf where it fails. Regret is computed from
	// it.
	True(c space.Config) float64
	// Best is the smallest True. Median is the median of True over configurations that are
	// uniform in the unit cube and do not fail. It is larger than Best.
	Best() float64
	Median() float64
}

// Optimiser is a contestant at work, with ask and tell, in this process or another one.
type Optimiser interface {
	// Ask returns the next configuration to evaluate, valid in the space. The error
	// is [ErrEnded] if there is none.
	Ask(ctx context.Context) (space.Config, error)
	// Tell gives the value of a configuration that was asked for, or of one that was never
	// asked for. If it failed, ok is false and value is 0. With one worker it is the
	// configuration that was asked for last.
	Tell(ctx context.Context, c space.Config, value float64, ok bool) error
	// Close releases its resources.
	Close() error
}

// Recommender is an Optimiser that recommends a configuration.
type Recommender interface {
	Optimiser
	// Recommend returns a configuration that was told. If there is none yet, ok is false.
	Recommend(ctx context.Context) (c space.Config, ok bool, err error)
}

// Predictor is an Optimiser that predicts outcomes.
type Predictor interface {
	Optimiser
	// Predicted returns the mean and the standard deviation of the outcome of the last Ask. If
	// there was no prediction, ok is false.
	Predicted() (mean, sd float64, ok bool)
}

// Limiter is an Optimiser that learns from metrics with limits. Others are told that a trial
// beyond a limit failed.
type Limiter interface {
	Optimiser
	// TellLimited is Tell for a [Limited] problem, with its metrics. The value is known
	// where a metric is above 0, too.
	TellLimited(ctx context.Context, c space.Config, value float64, metrics []float64) error
}

// Several is an Optimiser with several objectives ([Setup].Objectives), all minimised.
type Several interface {
	Optimiser
	// TellSeveral is Tell and TellLimited. The values are nil if the trial failed, and the metrics if
	// the problem has none.
	TellSeveral(ctx context.Context, c space.Config, values, metrics []float64) error
}

// Timed is an Optimiser that measures its own time, as one in another process must.
type Timed interface {
	Optimiser
	// AskSeconds is the CPU time of the last Ask and of all Tells since the Ask before it.
	AskSeconds() float64
}

// Contestant makes Optimisers of one kind.
type Contestant struct {
	// Name is the name on the command line and in files, of letters, digits and hyphens.
	Name string
	Kind Kind
	// Title describes it in a line, with the settings that are not defaults.
	Title string
	// Slow halves the number of seeds.
	Slow bool
	// Workers is how many trials run at a time, 0 for 1. Base is the name of the same one with
	// one worker.
	Workers int
	Base    string
	// New starts one. The errors are [*UnsupportedError] and [*MissingError].
	New func(ctx context.Context, s Setup) (Optimiser, error)
	// Version returns the version of the program that it runs, "" if it is part of this
	// module. It may start a process to find out. The error is a [*MissingError].
	Version func(ctx context.Context, s Setup) (string, error)

	component *study.Component // of ours, nil for others
}

// Setup is the initial data of an Optimiser. It describes the problem only by its space.
type Setup struct {
	Space   *space.Space
	Metrics []string // of a [Limited] problem
	Seed    uint64
	Trials  int    // that are planned
	Python  string // the interpreter that has the peers, "" for none
	// Objectives is the number of objectives of a peer, which then implements [Several], or 0 for one.
	Objectives int
}

// Kind is the role of a Contestant in the comparison.
type Kind string

// These are the kinds. Ablations are ours with a part changed, and are ranked separately.
const (
	Ours     Kind = "ours"
	Ablation Kind = "ablation"
	Baseline Kind = "baseline"
	Peer     Kind = "peer"
)

// Suite is a family of problems that are reported together.
type Suite struct {
	Name   string // "bbob", "bbob-noisy", "classic", "multimodal", …
	Title  string
	Source string // paper or data
	// Log is true if regrets span orders of magnitude, so that means are of log10.
	Log bool
	// Problems are listed without reading data.
	Problems []Listed
}

// Listed is a problem that is not opened yet.
type Listed struct {
	Name string // the Problem's name
	Tier Tier   // the smallest tier that includes it
	// Open opens it. The argument is the data directory, "" if there is none. The error is
	// a [*bench.DataError].
	Open func(data string) (Problem, error)
}

// Tier is the size of a comparison.
type Tier string

// The tiers, each with all problems of those before it.
const (
	Smoke    Tier = "smoke"    // seconds, shows that it works
	Standard Tier = "standard" // hours, needed to decide
	Full     Tier = "full"     // days, everything
)

// UnsupportedError is returned by contestants that do not support a space.
type UnsupportedError struct{ Contestant, Reason string }

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s does not support it: %s", e.Contestant, e.Reason)
}

// MissingError is returned by contestants whose software is missing.
type MissingError struct{ Contestant, Reason string }

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is missing: %s", e.Contestant, e.Reason)
}
