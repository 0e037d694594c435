package study

import (
	"fmt"
	"slices"
	"strings"
)

// States are the words for states, in the order of a trial's life.
func States() []string {
	var out []string
	for s := Queued; s <= Pruned; s++ {
		out = append(out, s.String())
	}
	return out
}

// ParseState reads a state.
func ParseState(word string) (TrialState, error) {
	words := States()
	if i := slices.Index(words, word); i >= 0 {
		return Queued + TrialState(i), nil
	}
	known := strings.Join(slices.Sorted(slices.Values(words)), ", ")
	if word == "" {
		return 0, fmt.Errorf("there are neither values nor a state; the states are %s", known)
	}
	return 0, fmt.Errorf("there is no state %.40q; there are %s", word, known)
}

// ParseReason reads why a trial failed. The empty word means a crash.
func ParseReason(word string) (FailReason, error) {
	switch word {
	case "", "crash":
		return FailedCrash, nil
	case "cancelled", "expired": // the lease of an expired trial ended without an outcome
		return FailedCancelled, nil
	case "nan":
		return FailedNaN, nil
	}
	return 0, fmt.Errorf("there is no reason %.40q; there are crash, cancelled, nan", word)
}
