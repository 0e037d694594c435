package model

// Schedule of model events, in results.
const (
	maxStep   = 512 // while there are no more than maxStep·stepShare results
	stepShare = 64  // later the step is this fraction of the results
	fitRatio  = 1.2 // growth between fits
)

// step returns how many results after a model event the next one is due. It also bounds the
// number of results that a restart replays. For long histories it grows with the results,
// as the cost of a model event does.
func step(results int) int {
	return min(max(results/5, 2), max(maxStep, results/stepShare))
}

// lag returns how many more results there may be before the event must be in the log.
func lag(results int) int {
	if results < 128 {
		return 0
	}
	return min(results/64, 16)
}

// milestone returns the number of results that the model event due after the list is made
// from, or 0 if none is due. The event before was made from last results, 0 for none, and
// start is as for first.
func milestone(last int, list []Result, start int) int {
	c, n := 0, len(list)
	if last == 0 {
		if c = first(list, start); c == 0 {
			return 0
		}
	} else if c = last + step(last); c+lag(c) > n {
		return 0
	}
	for c+step(c)+lag(c+step(c)) <= n {
		c += step(c)
	}
	return c
}

// leastMeasured is how many measured results a model needs.
const leastMeasured = 2

// first returns the number of results from which the first model is made. It is at least
// start, with at least two measured ones. It is 0 if there are not that many.
func first(list []Result, start int) int {
	measured := 0
	for i, r := range list {
		if r.Y != nil {
			measured++
		}
		if i+1 >= start && measured >= leastMeasured {
			return i + 1
		}
	}
	return 0
}
