package bo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bench"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/space"
)

// Run has the trials of one optimiser on one problem from one seed.
type Run struct {
	Problem, Optimiser string
	Version            string // of the optimiser
	Seed               uint64
	Clock              string  // clock of AskSeconds, "cpu" or "wall"
	Best, Median       float64 // of the problem
	Ended              string  // why there are fewer trials than planned, "" if there are not
	Trials             []Trial
}

// Trial is one evaluation of a Run.
type Trial struct {
	Value float64 // measured, NaN if it failed
	OK    bool
	True  float64 // centre of Value
	// BestTrue is True of the trial with the least Value so far, which a user would take.
	// It is +Inf before one succeeds.
	BestTrue   float64
	AskSeconds float64
	// Recommended is True of the optimiser's recommendation after this trial, NaN if it was
	// not asked.
	Recommended float64
}

// choice selects one of the configurations tried.
type choice int

const (
	measured    choice = iota // the one with the least measured value
	recommended               // the optimiser's recommendation, if it makes one
	found                     // the best one, known only to the benchmark
)

// regret returns the normalised regret of a choice after n trials, (BestTrue −
// Best)/(Median − Best) for the best measured. Half of all random configurations are better
// than 1. After a Run that ended early it is the regret at its end. It is +Inf before a
// trial succeeds. Without a recommendation after this trial it uses the best measured.
func (r *Run) regret(n int, by choice) float64 {
	n = min(n, len(r.Trials))
	if n == 0 {
		return math.Inf(1)
	}
	last := r.Trials[n-1]
	v := last.BestTrue
	switch {
	case by == recommended && !math.IsNaN(last.Recommended):
		v = last.Recommended
	case by == found:
		for _, t := range r.Trials[:n] {
			v = min(v, t.True)
		}
	}
	return max(v-r.Best, 0) / (r.Median - r.Best)
}

// These rules bound long runs. Beyond longRun trials a run continues only while the last
// lastAsks asks took less than dearAsk seconds each, on average.
const (
	longRun  = 200
	lastAsks = 20
	dearAsk  = 0.5
)

// runner is one run in progress.
type runner struct {
	run       Run
	problem   Problem
	optimiser Optimiser
	cpu       bool // the process does nothing else, so its CPU time is that of the asks
}

// do runs the trials.
func (r *runner) do(ctx context.Context, trials int) error {
	noise := stream.New(stream.Derive(r.run.Seed, "bench bo noise "+r.run.Problem, 0))
	least, bestTrue := math.Inf(1), math.Inf(1)
	for n := range trials {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n >= longRun && n%lastAsks == 0 && r.dear() >= dearAsk {
			r.run.Ended = fmt.Sprintf("an ask costs %.2g s", r.dear())
			return nil
		}
		watch := bench.StartWatch()
		c, err := r.optimiser.Ask(ctx)
		if errors.Is(err, ErrEnded) {
			r.run.Ended = ErrEnded.Error()
			return nil
		} else if err != nil {
			return fmt.Errorf("ask of trial %d: %w", n, err)
		}
		seconds := r.seconds(watch)
		if err := r.problem.Space().Validate(c); err != nil {
			return fmt.Errorf("trial %d: %s is not in the space: %w", n, c, err)
		}
		value, ok := r.problem.Evaluate(c, noise)
		truth := r.problem.True(c)
		if err := r.check(c, value, ok, truth); err != nil {
			return err
		}
		t := Trial{Value: value, OK: ok, True: truth, AskSeconds: seconds, Recommended: math.NaN()}
		if !ok {
			value, t.Value = 0, math.NaN()
		} else if value < least {
			least, bestTrue = value, truth
		}
		t.BestTrue = bestTrue
		if err := r.tell(ctx, c, value, ok); err != nil {
			return fmt.Errorf("tell of trial %d: %w", n, err)
		}
		if slices.Contains(budgetsOf(trials), n+1) {
			if t.Recommended, err = r.recommended(ctx); err != nil {
				return fmt.Errorf("recommendation after trial %d: %w", n, err)
			}
		}
		r.run.Trials = append(r.run.Trials, t)
	}
	return nil
}

// tell tells the optimiser a trial, with its metrics if it learns from them.
func (r *runner) tell(ctx context.Context, c space.Config, value float64, ok bool) error {
	problem, has := r.problem.(Limited)
	optimiser, learns := r.optimiser.(Limiter)
	if !has || !learns {
		return r.optimiser.Tell(ctx, c, value, ok)
	}
	value, metrics := problem.Measure(c)
	return optimiser.TellLimited(ctx, c, value, metrics)
}

// recommended returns True of the optimiser's recommendation, NaN if it makes none.
func (r *runner) recommended(ctx context.Context) (float64, error) {
	o, can := r.optimiser.(Recommender)
	if !can {
		return math.NaN(), nil
	}
	c, ok, err := o.Recommend(ctx)
	if err != nil || !ok {
		return math.NaN(), err
	}
	return r.problem.True(c), nil
}

// seconds returns the time of the ask that has just ended.
func (r *runner) seconds(watch bench.Stopwatch) float64 {
	if t, ok := r.optimiser.(Timed); ok {
		return t.AskSeconds()
	}
	if r.cpu {
		return watch.CPU()
	}
	return watch.Wall()
}

// dear returns the mean time of the last asks.
func (r *runner) dear() float64 {
	sum := 0.0
	last := r.run.Trials[len(r.run.Trials)-lastAsks:]
	for _, t := range last {
		sum += t.AskSeconds
	}
	return sum / float64(len(last))
}

// check compares an evaluation with the guarantees of the problem.
func (r *runner) check(c fmt.Stringer, value float64, ok bool, truth float64) error {
	switch slack := 1e-9 * (r.run.Median - r.run.Best); {
	case ok && (math.IsNaN(value) || math.IsInf(value, 0)):
		return fmt.Errorf("the problem is broken: the value at %s is %v", c, value)
	case math.IsNaN(truth) || ok && math.IsInf(truth, 0):
		return fmt.Errorf("the problem is broken: the true value at %s is %v", c, truth)
	case truth < r.run.Best-slack-1e-9*math.Abs(r.run.Best):
		return fmt.Errorf("the problem is broken: %v at %s is less than its best, %v", truth, c, r.run.Best)
	}
	return nil
}
