package acquire

import (
	"errors"

	"github.com/bkbtuner/bkb/tuner/propose/model"

	"github.com/bkbtuner/bkb/tuner/study"
)

// ErrExhausted is returned when there is nothing left to suggest, now or later.
var ErrExhausted = errors.New("every configuration of the grid has been suggested")

// Proposal is what a proposer answers.
type Proposal struct {
	Suggestions []study.Suggestion
	// UsefulWorkers is how many trials are worth running at the same time; 0 means
	// that no limit is known, as for designs that do not look at results.
	UsefulWorkers int
	// Gap is how much better than the best the model thinks a configuration could
	// be at most, in the units of the one objective; 0 if it cannot say, as while
	// trials are pending.
	Gap float64
	// Warnings say what of the study's settings comes to nothing, and why.
	Warnings []string
	// Capped is the number of inducing points where there would be more but for the
	// proposer's cap, else 0.
	Capped int
	// Converged says that by the proposer's own rule there is nothing more worth
	// trying.
	Converged bool
}

// Diagnosis is how a model stands. Without a model all is 0.
type Diagnosis struct {
	Results            int      // that the model has heard of, late ones included
	InducingPoints     int      // m
	Capped             bool     // there would be more but for the option cap
	EffectiveDimension float64  // d_eff, when inducing points were last chosen
	InformationGain    float64  // log det V
	Noise              float64  // standard deviation, in units of the objective's
	Beta, TheoryBeta   float64  // width of the confidence bounds used, and by theory
	Gap                float64  // see Proposal
	Warnings           []string // see Proposal
	// Draw is how the present inducing points were drawn; its Sampler is empty for a
	// model of an earlier program.
	Draw model.Draw
}
