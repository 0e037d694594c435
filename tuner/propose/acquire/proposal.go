package acquire

import (
	"errors"

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
	// Converged reports that by the proposer's own rule nothing more is worth trying.
	Converged bool
}
