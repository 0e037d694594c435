package experiment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Experiment is something to measure.
type Experiment struct {
	Name   string // name on the command line, such as "fig5.1"
	Title  string // one line
	Source string // source, such as "Carratino (2020), figure 5.1"
	About  string // method and columns, in lines of at most 88 characters
	// Parts are the names of parts that can be run alone, such as data sets. It is nil if
	// there is one part only.
	Parts []string
	// Repeats is the number of repeats at Standard scale unless Env says otherwise, or 0 if
	// nothing is repeated.
	Repeats int
	// Measure runs the experiment. On an error it returns the partial result, which may be
	// nil.
	Measure func(ctx context.Context, env *Env) (*report.Result, error)
}

// Run checks the environment and measures. The errors are [*PartError], [*ValueError],
// [*DataError], that of ctx, and those of the measurement. With an error the result is
// partial and may be nil.
func (e Experiment) Run(ctx context.Context, env *Env) (*report.Result, error) {
	if err := env.check(e); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	own := *env
	if own.Repeats == 0 {
		own.Repeats = max(1, own.Pick((e.Repeats+4)/5, e.Repeats, e.Repeats))
	}
	result, err := e.Measure(ctx, &own)
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("bench: %s: %w", e.Name, err)
	}
	return result, err
}

// Scale is the size of an experiment.
type Scale int

// Standard ends within minutes on two cores. Quick shows in seconds that the experiment
// works. Full is as near to the paper as this machine allows.
const (
	Quick Scale = iota - 1
	Standard
	Full
)

func (s Scale) String() string {
	switch s {
	case Quick:
		return "quick"
	case Standard:
		return "standard"
	case Full:
		return "full"
	}
	return fmt.Sprintf("scale(%d)", int(s))
}

// MarshalText writes a Scale as a word in JSON.
func (s Scale) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Env is the environment of an experiment. The zero Env is Standard, without data.
type Env struct {
	Data    string // the data directory, laid out as shared/data, or "" for none
	Seed    uint64
	Scale   Scale
	Repeats int      // 0 for the experiment's own number
	Only    []string // the Parts to run, nil for all
	Workers int      // goroutines, 0 for one per processor
	// Progress, if not nil, receives the progress, from one goroutine at a time.
	Progress func(Progress)
}

// Progress is the progress of an experiment.
type Progress struct {
	Done, Of int
	What     string // the present activity
}

// PartError reports a part that an experiment does not have.
type PartError struct {
	Experiment, Part string
	Parts            []string // the parts that it has
}

func (e *PartError) Error() string {
	if len(e.Parts) == 0 {
		return fmt.Sprintf("bench: %s has no parts, and %q is not one", e.Experiment, e.Part)
	}
	return fmt.Sprintf("bench: %s has no part %q; it has %s", e.Experiment, e.Part, strings.Join(e.Parts, ", "))
}

// ValueError reports a number outside its domain. In is "bench" for those of this package.
type ValueError = kernel.ValueError

// NewValueError returns a *ValueError about a setting of an experiment.
func NewValueError(what string, value int, want string) error {
	return &ValueError{In: "bench", What: what, Index: -1, Value: value, Want: want}
}

func (v *Env) check(e Experiment) error {
	for _, part := range v.Only {
		if !slices.Contains(e.Parts, part) {
			return &PartError{e.Name, part, e.Parts}
		}
	}
	switch {
	case v.Repeats < 0:
		return NewValueError("repeats", v.Repeats, "1 or more (0: the experiment's own)")
	case v.Workers < 0:
		return NewValueError("workers", v.Workers, "1 or more (0: one per processor)")
	case v.Scale < Quick || v.Scale > Full:
		return NewValueError("scale", int(v.Scale), "Quick, Standard or Full")
	}
	return nil
}

// Pick returns the argument for the scale.
func (v *Env) Pick(quick, standard, full int) int {
	switch v.Scale {
	case Quick:
		return quick
	case Full:
		return full
	}
	return standard
}

// Wants reports whether a part is to be run.
func (v *Env) Wants(part string) bool { return len(v.Only) == 0 || slices.Contains(v.Only, part) }

// Named reports whether a part was asked for by its name. Its data must then exist.
// Otherwise it may be left out with a note.
func (v *Env) Named(part string) bool { return slices.Contains(v.Only, part) }

// Rand returns the generator of repeat i for a purpose.
func (v *Env) Rand(purpose string, i int) *rand.Rand { return stream.New(v.Derive(purpose, i)) }

// Derive returns the seed of repeat i for a purpose.
func (v *Env) Derive(purpose string, i int) uint64 {
	return stream.Derive(v.Seed, "bench "+purpose, uint64(i))
}

// Report sends the progress.
func (v *Env) Report(done, of int, format string, args ...any) {
	if v.Progress != nil {
		v.Progress(Progress{done, of, fmt.Sprintf(format, args...)})
	}
}
