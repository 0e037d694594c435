package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/figure"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Experiment is something to measure.
type Experiment struct {
	Name   string // as "fig5.1": what the command line calls it
	Title  string // what it shows, a line
	Source string // where it comes from, as "thesis, figure 5.1"
	About  string // what is done and what the columns mean, lines of at most 88 characters
	// Parts are names of what can be run alone, such as data sets; nil if it is
	// one piece.
	Parts []string
	// Repeats is how often things are repeated at Standard scale unless Env says
	// otherwise; 0 for what is not repeated.
	Repeats int
	// Measure does it. On an error the result is what was done by then, which may
	// be nil.
	Measure func(ctx context.Context, env *Env) (*figure.Result, error)
}

// Run checks the environment and measures. Errors: [*PartError], [*ValueError],
// [*DataError], that of ctx, and those of what is measured. Beside an error the
// result is what was done by then; it may be nil.
func (e Experiment) Run(ctx context.Context, env *Env) (*figure.Result, error) {
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

// Scale is how much of an experiment is done.
type Scale int

// The scales: Standard ends within minutes on two cores; Quick shows in seconds
// that it works; Full is as near to the paper as this machine allows.
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

// MarshalText makes a Scale a word in JSON.
func (s Scale) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Env is what an experiment runs in. The zero Env is Standard, without data.
type Env struct {
	Data    string // the folder of real data, laid out as shared/data; "": none
	Seed    uint64
	Scale   Scale
	Repeats int      // 0: the experiment's own
	Only    []string // the Parts to run; nil: all
	Workers int      // goroutines; 0: one per processor
	// Progress, if not nil, hears how it goes, from one goroutine at a time.
	Progress func(Progress)
}

// Progress is how far an experiment is.
type Progress struct {
	Done, Of int
	What     string // what is being done now
}

// PartError reports a part that an experiment does not have.
type PartError struct {
	Experiment, Part string
	Parts            []string // those that it has
}

func (e *PartError) Error() string {
	if len(e.Parts) == 0 {
		return fmt.Sprintf("bench: %s is one piece: it has no part %q", e.Experiment, e.Part)
	}
	return fmt.Sprintf("bench: %s has no part %q; it has %s", e.Experiment, e.Part, strings.Join(e.Parts, ", "))
}

// ValueError reports a number outside its domain. In is "bench" for those of
// this package.
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

// Wants tells whether a part is to be run.
func (v *Env) Wants(part string) bool { return len(v.Only) == 0 || slices.Contains(v.Only, part) }

// Named tells whether a part was asked for by its name. What it needs must then be
// there; otherwise it may be left out with a note.
func (v *Env) Named(part string) bool { return slices.Contains(v.Only, part) }

// Rand returns the generator of repeat i of something, named by purpose.
func (v *Env) Rand(purpose string, i int) *rand.Rand { return stream.New(v.Derive(purpose, i)) }

// Derive returns the seed of repeat i of something, named by purpose.
func (v *Env) Derive(purpose string, i int) uint64 {
	return stream.Derive(v.Seed, "bench "+purpose, uint64(i))
}

// Report says how far it is.
func (v *Env) Report(done, of int, format string, args ...any) {
	if v.Progress != nil {
		v.Progress(Progress{done, of, fmt.Sprintf(format, args...)})
	}
}
