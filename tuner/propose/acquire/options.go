package acquire

import "github.com/bkbtuner/bkb/tuner/space"

// Options determine how configurations are chosen. Their names in parentheses are those in
// the JSON of the proposer "bkb".
type Options struct {
	// Theory ("beta", "practical", the default, or "theory") takes the width of the
	// confidence bounds from Theorem 21 of Carratino (2020), with norm 1 and probability
	// 0.9, in place of √(c·d·log(2t+1)).
	Theory bool
	// Width ("width", default 0.05) is c of the practical √(c·d·log(2t+1)).
	Width float64
	// ExploitEvery ("exploit_every", 0 to 1000, default 4) is the period of suggestions
	// where the posterior mean is best, in trials. 0 means never.
	ExploitEvery int
	// OnDuplicate ("on_duplicate", "resample", the default, "replicate" or "reuse") is the
	// policy for configurations that the study has already. With replicate they are
	// suggested again where that is best. With resample something new is suggested until
	// all configurations have been, and then they are suggested again. Arms under noise are
	// suggested again earlier (see arms). Where there is
	// almost no noise, a configuration so near to a trial that it would teach nothing is
	// not new. With reuse no configuration is run twice. When nothing new is left,
	// suggestions end with [ErrExhausted].
	OnDuplicate Duplicates
	// StopGap ("stop_gap", default 0, never), with one objective, ends the study when no
	// configuration can be better than the best by more than this, in the objective's units
	// and as far as the confidence bounds hold. It does not end before there are StopAfter
	// results.
	StopGap   float64
	StopAfter int
	// EvolveFrom ("evolve_from", 0 to a million, default 200), with one objective, is the number
	// of results from which on an evolution strategy makes many suggestions while those of the
	// model do not improve on the best. 0 means never.
	EvolveFrom int
	// Quadratic ("quadratic", "on", the default, or "off"), with one objective, lets suggestions
	// that exploit take the best point of a quadratic through the best results, where one explains
	// them well.
	Quadratic bool
	// Repeat and Exact are the values of "noise", with one objective. With "learn", the
	// default, the best trial is repeated once or twice if noise and effects that the model
	// does not explain look the same, and if on_duplicate is resample. With "none" outcomes
	// are exact, so that the best measured trial is the best one.
	Repeat, Exact bool
	// Recommend ("recommend", "auto", the default, "mean" or "lower") determines the
	// best trial.
	Recommend Recommendation
}

// Recommendation is a way to choose the best trial.
type Recommendation string

// The ways to choose the best trial.
const (
	Auto    Recommendation = "auto" // with one objective by the measurements where there is next to no noise, else by the mean
	ByMean  Recommendation = "mean"
	ByLower Recommendation = "lower" // the lower confidence bound
)

// Duplicates is a policy for configurations that the study has already.
type Duplicates string

// The policies for duplicates. See [Options].
const (
	Resample  Duplicates = "resample"
	Replicate Duplicates = "replicate"
	Reuse     Duplicates = "reuse"
)

func orderedAxes(sp *space.Space) int {
	n := 0
	for _, a := range sp.Axes() {
		if a.Ordered {
			n++
		}
	}
	return n
}
