package bo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/bench/experiment"
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
	// Mean and StdDev are the optimiser's prediction of Value when it asked for the trial, NaN
	// if it made none.
	Mean, StdDev float64
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
	workers   int  // trials running at a time, 0 for 1
	cpu       bool // the process does nothing else, so its CPU time is that of the asks

	running []running
	clock   float64 // of the simulated workers
}

// running is a trial that was asked for. It ends at a time of the runner's clock.
type running struct {
	config space.Config
	trial  Trial // without outcome
	end    float64
}

// do runs the trials, which are recorded in the order in which they end. A trial takes between
// 1/2 and 3/2 units of time, at random.
func (r *runner) do(ctx context.Context, trials int) error {
	noise := stream.New(stream.Derive(r.run.Seed, "bench bo noise "+r.run.Problem, 0))
	durations := stream.New(stream.Derive(r.run.Seed, "bench bo durations "+r.run.Problem, 0))
	least, bestTrue := math.Inf(1), math.Inf(1)
	for n := range trials {
		if err := ctx.Err(); err != nil {
			return err
		}
		if n >= longRun && n%lastAsks == 0 && r.dear() >= dearAsk {
			r.run.Ended = fmt.Sprintf("an ask costs %.2g s", r.dear())
			return nil
		}
		for len(r.running) < min(max(r.workers, 1), trials-n) && r.run.Ended == "" {
			if err := r.ask(ctx, durations); errors.Is(err, ErrEnded) {
				r.run.Ended = ErrEnded.Error()
			} else if err != nil {
				return fmt.Errorf("ask of trial %d: %w", n+len(r.running), err)
			}
		}
		if len(r.running) == 0 {
			return nil
		}
		c, t := r.next()
		value, ok := r.problem.Evaluate(c, noise)
		truth := r.problem.True(c)
		if err := r.check(c, value, ok, truth); err != nil {
			return err
		}
		if t.Value, t.OK, t.True = value, ok, truth; !ok {
			value, t.Value = 0, math.NaN()
		} else if value < least {
			least, bestTrue = value, truth
		}
		t.BestTrue = bestTrue
		if err := r.tell(ctx, c, value, ok); err != nil {
			return fmt.Errorf("tell of trial %d: %w", n, err)
		}
		if slices.Contains(budgetsOf(trials), n+1) {
			var err error
			if t.Recommended, err = r.recommended(ctx); err != nil {
				return fmt.Errorf("recommendation after trial %d: %w", n, err)
			}
		}
		r.run.Trials = append(r.run.Trials, t)
	}
	return nil
}

// ask starts a trial.
func (r *runner) ask(ctx context.Context, durations *rand.Rand) error {
	watch := experiment.StartWatch()
	c, err := r.optimiser.Ask(ctx)
	if err != nil {
		return err
	}
	t := Trial{AskSeconds: r.seconds(watch), Recommended: math.NaN(), Mean: math.NaN(), StdDev: math.NaN()}
	if err := r.problem.Space().Validate(c); err != nil {
		return fmt.Errorf("%s is not in the space: %w", c, err)
	}
	if o, can := r.optimiser.(Predictor); can {
		if mean, sd, ok := o.Predicted(); ok {
			t.Mean, t.StdDev = mean, sd
		}
	}
	r.running = append(r.running, running{c, t, r.clock + 0.5 + durations.Float64()})
	return nil
}

// next ends the running trial that ends first.
func (r *runner) next() (space.Config, Trial) {
	first := 0
	for i, o := range r.running {
		if o.end < r.running[first].end {
			first = i
		}
	}
	o := r.running[first]
	r.running, r.clock = slices.Delete(r.running, first, first+1), o.end
	return o.config, o.trial
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
func (r *runner) seconds(watch experiment.Stopwatch) float64 {
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
