package acquire

import (
	"errors"

	"github.com/bkbtuner/bkb/tuner/propose/model"

	"github.com/bkbtuner/bkb/tuner/study"
)

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
	// Capped is the proposer's option cap if it prevents more inducing points, else 0.
	Capped int
	// Converged reports that by the proposer's own rule nothing more is worth trying.
	Converged bool
}

// Diagnosis describes the state of a model. Without a model only State and Missing are
// set.
type Diagnosis struct {
	State   model.State
	Missing int // results that a model still needs
	// Position is that of the event that made the model, from EventResults results.
	Position     study.Position
	EventResults int

	Results            int      // that the model knows, late ones included
	InducingPoints     int      // m
	Capped             bool     // the option cap prevents more inducing points
	EffectiveDimension float64  // d_eff, when inducing points were last chosen
	InformationGain    float64  // log det V
	Noise              float64  // standard deviation, in the objective's units
	Beta, TheoryBeta   float64  // width of the confidence bounds used, and by theory
	Gap                float64  // see Proposal
	Warnings           []string // see Proposal
	// Covered of the last Predicted outcomes of the first objective are within the 95 %
	// interval that was predicted for them. Calibration is the factor of standard
	// deviations of outcomes that tracks 95 % (see [model.Calibration.Factor]).
	Covered, Predicted int
	Calibration        float64
	Outliers           int // results that the model leaves out
	// Failures is the number of results that failed. AvoidsFailures reports whether suggestions
	// avoid places like theirs (see [model.Engine.Blames]).
	Failures       int
	AvoidsFailures bool
	// Metrics are the models of the metrics with a limit.
	Metrics []model.LimitedMetric
	// Idle is the number of results since the last improvement. Stuck reports that they are
	// so many that suggestions look for other basins.
	Idle  int
	Stuck bool
	// Draw describes how the present inducing points were drawn.
	Draw model.Draw
	// LengthScales are those of the ordered parameters that are not constant, as parts of
	// their ranges.
	LengthScales map[string]float64
}
