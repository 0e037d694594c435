package acquire

import "github.com/bkbtuner/bkb/tuner/space"

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
	Recommend    Recommendation
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

// The policies for duplicates.
const (
	Resample  Duplicates = "resample"  // new ones while there are any, and arms under noise as often as needed
	Replicate Duplicates = "replicate" // again where that is best
	Reuse     Duplicates = "reuse"     // never again, and [ErrExhausted] when nothing new is left
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
