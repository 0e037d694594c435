package model

// Schedule of model events, in results.
const (
	maxStep   = 512 // while there are no more than maxStep·stepShare results
	stepShare = 64  // later the step is so small a part of the results
	fitRatio  = 1.2 // growth between fits
)

// step is how many results after a model event the next one is due, and what a
// restart replays at most. It grows with the results in the end, as what a model
// event costs does.
func step(results int) int {
	return min(max(results/5, 2), max(maxStep, results/stepShare))
}

// lag is how many results more there may be before it must be there.
func lag(results int) int {
	if results < 128 {
		return 0
	}
	return min(results/64, 16)
}

// milestone is the number of results that the model event due after the list is
// made from; 0 if none is due. last is that of the event before, 0 for none, and start
// as for first.
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

// first is the number of results from which the first model is made: start of them,
// of which two are measured; 0 if there are not so many.
func first(list []Result, start int) int {
	measured := 0
	for i, r := range list {
		if r.Y != nil {
			measured++
		}
		if i+1 >= start && measured >= 2 {
			return i + 1
		}
	}
	return 0
}
