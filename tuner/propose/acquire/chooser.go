package acquire

import (
	"context"
	"errors"
	"fmt"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Chooser chooses the next configurations of one study, and the best trials. Its state are
// folds of the results, which are computed again when they are missing.
type Chooser struct {
	spec      study.Spec
	options   Options
	finite    finite
	arms      *arms
	elite     elite
	evolution evolution
	rounding  []float64 // how far points that are the same may be apart in each coordinate
}

// New returns the chooser of a study.
func New(spec study.Spec, o Options) *Chooser {
	return &Chooser{
		spec: spec, options: o, finite: newFinite(spec.Space), arms: newArms(spec.Space),
		elite: elite{most: max(eliteSize, bandit.MostOfQuadratic(spec.Space.Dim()))}, rounding: rounding(spec.Space.Axes()),
	}
}

// Propose makes n suggestions for the trials trial, trial+1, …. It makes fewer, but at
// least one, if there are no more. The engine e belongs to log position seen. The errors
// are [ErrExhausted] and that of ctx.
func (c *Chooser) Propose(ctx context.Context, e *model.Engine, trial int, seen study.Position, n int) (Proposal, error) {
	a := c.on(e, e.Outlook())
	if c.options.StopGap > 0 && len(e.Results.Pending) == 0 && (c.mayEvolve(e) || e.Limited()) {
		a.survey(trial) // since a sample and the expected improvement do not look for the largest bound
	}
	var p Proposal
	for i := range n {
		if err := ctx.Err(); err != nil {
			return Proposal{}, err
		}
		s, x, err := a.next(trial+i, seen)
		if errors.Is(err, ErrExhausted) && i > 0 {
			break
		} else if err != nil {
			return Proposal{}, err
		}
		p.Suggestions = append(p.Suggestions, s)
		if i+1 < n {
			a.outlook.Pull(x)
		}
		a.chosen = append(a.chosen, x)
	}
	p.UsefulWorkers, p.Warnings, p.Noise = a.usefulWorkers(), e.Warnings(), a.noise
	if gap, ok := a.gap(); ok && len(e.Results.Pending) == 0 {
		p.Gap = gap
		p.Converged = c.options.StopGap > 0 && gap <= c.options.StopGap && len(e.Results.List) >= c.options.StopAfter && e.Calibration.Known() && !e.Calibration.Poor()
	}
	return p, nil
}

// Diagnose describes the state of the model for the first objective. Its random numbers are
// those of a trial. Running trials do not count, because they have no outcome yet.
func (c *Chooser) Diagnose(e *model.Engine, trial int) surrogate.Diagnosis {
	gap, idle, stuck := 0.0, c.idle(e), false
	if len(c.spec.Objectives) == 1 {
		a := c.on(e, e.Past())
		t := a.survey(trial)
		if e.Limited() && a.improves(t) {
			a.improve(&t)
			t.pool = a.search(t)
		}
		stuck = a.gainsNothing(t) && e.Event.Far != nil
		gap, _ = a.gap()
	}
	inside, of := e.Calibration.Coverage()
	return surrogate.Diagnosis{
		Covered: inside, Predicted: of, Calibration: e.Calibration.Factor(), Outliers: len(e.Outliers),
		Idle: idle, Stuck: stuck, Metrics: e.LimitedMetrics(),
		Failures: e.Failures(), AvoidsFailures: e.Blames(),
		State: surrogate.Ready, Position: e.Effective, EventResults: e.Event.Results, LengthScales: e.LengthScales(), PriorMean: e.PriorMean(),
		Results: len(e.Results.List), InducingPoints: e.InducingPoints(), Capped: e.Capped(),
		EffectiveDimension: e.Event.Surfaces[0].Dimension, InformationGain: e.Gain(),
		Noise: e.Noise(), Beta: c.width(e, 0, 0), TheoryBeta: theory(e, 0), Gap: gap,
		Warnings: append(e.Warnings(), c.doubts(e, stuck, idle)...), Draw: e.Event.Surfaces[0].Draw,
	}
}

// idle returns the number of results after the best, of several objectives after the last that
// joined the front. Without a best all results count.
func (c *Chooser) idle(e *model.Engine) int {
	best, n := c.eliteOf(e), len(e.Results.List)
	switch {
	case len(best) == 0:
		return n
	case len(c.spec.Objectives) == 1:
		return n - 1 - best[0]
	}
	return n - 1 - best[len(best)-1]
}

// doubts returns messages about a study that is stuck, and about a model that is wrong.
func (c *Chooser) doubts(e *model.Engine, stuck bool, idle int) []string {
	var out []string
	if stuck {
		out = append(out, fmt.Sprintf("the study is stuck: the best suggestion gains next to nothing on the best (results since then: %d); suggestions look for other basins, so let it run on, or enqueue a configuration that differs from the best", idle))
	}
	if n := len(e.Outliers); n > 0 {
		results := "results as outliers, because they are"
		if n == 1 {
			results = "result as an outlier, because it is"
		}
		out = append(out, fmt.Sprintf("the model leaves out %d %s far worse than the nearest ones; tell such trials as failed if their measurement was", n, results))
	}
	inside, of := e.Calibration.Coverage()
	if !e.Calibration.Poor() {
		return out
	}
	text := fmt.Sprintf("the model is overconfident: %d of the last %d outcomes are outside their 95 %% interval; bounds of the gap are %.2g times as wide", of-inside, of, max(e.Calibration.Factor(), 1))
	if c.options.StopGap > 0 {
		text += ", and stop_gap does not end the study"
	}
	return append(out, text)
}

// Incumbent returns the best posterior mean of the best results, in the units of the one
// objective. If there is none, ok is false.
func (c *Chooser) Incumbent(e *model.Engine) (y float64, ok bool) {
	if len(c.spec.Objectives) != 1 || len(c.eliteOf(e)) == 0 {
		return 0, false
	}
	return e.Show(0, c.standing(e).best()), true
}

// trialSeed is the seed of the random numbers of a trial's suggestion.
func (c *Chooser) trialSeed(trial int) uint64 {
	return stream.Derive(c.spec.Seed, "bkb", uint64(trial))
}

// decode returns the configuration of a point and moves the point onto it.
func (c *Chooser) decode(x []float64) (space.Config, error) {
	config, err := c.spec.Space.Decode(x)
	if err == nil {
		err = c.spec.Space.Encode(config, x)
	}
	return config, err
}

// ErrExhausted is returned when there is nothing left to suggest, now or later.
var ErrExhausted = errors.New("every configuration of the grid has been suggested")

// Proposal is the answer of a proposer.
type Proposal struct {
	Suggestions []study.Suggestion
	// UsefulWorkers is how many trials are worth running at the same time. It is 0 if no
	// limit is known, as for designs that do not look at results.
	UsefulWorkers int
	// Noise is the standard deviation of the noise of an outcome of the first suggestion,
	// for each objective and in its unit. It is empty without a model.
	Noise []float64
	// Gap is how much better than the best a configuration can be at most, by the model and
	// in the units of the one objective. It is 0 if it is not known, for example while
	// trials are pending.
	Gap float64
	// Warnings name settings of the study that have no effect, and why.
	Warnings []string
	// Converged reports that by the proposer's own rule nothing more is worth trying.
	Converged bool
}

// Options determine how configurations are chosen. docs/cli.md says what each is for, under its
// name in the JSON of the proposer "bkb".
type Options struct {
	Theory       bool       // beta = theory: the width of bounds by Theorem 21 of Carratino (2020)
	Width        float64    // width, c of the practical √(c·d·log(2t+1))
	ExploitEvery int        // exploit_every, in trials, 0 for never
	OnDuplicate  Duplicates // on_duplicate
	StopGap      float64    // stop_gap, in the objective's units, 0 for never
	StopAfter    int        // results before which StopGap ends no study
	EvolveFrom   int        // evolve_from, in results, 0 for never
	Quadratic    bool       // quadratic = on
	Repeat       bool       // noise = learn, and on_duplicate = resample: the best trial is repeated
	Exact        bool       // noise = none: the best measured trial is the best one
}

// Duplicates is a policy for configurations that the study has already.
type Duplicates string

// The policies for duplicates.
const (
	Resample  Duplicates = "resample"  // new ones while there are any, and arms under noise as often as needed
	Replicate Duplicates = "replicate" // again where that is best
	Reuse     Duplicates = "reuse"     // never again, and [ErrExhausted] when nothing new is left
)
