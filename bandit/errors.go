package bandit

import (
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Next returns ErrBatchFull where the batch is closed and some of its feedback is missing.
var ErrBatchFull = errors.New("bandit: the batch is full; feedback is outstanding")

// ErrPending says that pulls without feedback prevent the call.
var ErrPending = errors.New("bandit: pulls are pending")

// ErrNotPending says that a pull to cancel is not pending.
var ErrNotPending = errors.New("bandit: not pending")

// ValueError reports a number outside its domain, and its place. Index is −1 for a single number.
type ValueError = kernel.ValueError

func valueError(what string, index int, v float64, want string) error {
	return &ValueError{In: "bandit", What: what, Index: index, Value: v, Want: want}
}

// ShapeError reports an argument of the wrong length.
type ShapeError = kernel.ShapeError

func shapeError(what string, got, want int) error {
	return &ShapeError{In: "bandit", What: what, Got: got, Want: strconv.Itoa(want)}
}

// ArmError reports an arm that does not exist.
type ArmError struct{ Arm, Arms int }

func (e *ArmError) Error() string {
	return fmt.Sprintf("bandit: arm %d, want 0 ≤ arm < %d", e.Arm, e.Arms)
}

// EmptyError reports that something is missing or empty.
type EmptyError struct{ What string }

func (e *EmptyError) Error() string { return "bandit: no " + e.What }

// DuplicateArmError reports two arms that are the same input.
type DuplicateArmError struct{ First, Second int }

func (e *DuplicateArmError) Error() string {
	return fmt.Sprintf("bandit: arm %d is the same input as arm %d; leave one of them out", e.Second, e.First)
}

// maxReward keeps squares of rewards, and sums of them, finite.
const maxReward = 1e150

func checkRewards(y []float64) error {
	if len(y) == 0 {
		return &EmptyError{What: "y"}
	}
	for i, v := range y {
		if !(math.Abs(v) <= maxReward) {
			return valueError("y", i, v, "finite, |y| ≤ 1e150")
		}
	}
	return nil
}

func finite(v float64) bool { return v-v == 0 }

// positive returns an error unless v > 0 is finite.
func positive(what string, v float64) error {
	if v > 0 && finite(v) {
		return nil
	}
	return valueError(what, -1, v, "> 0 and finite")
}

// fraction returns an error unless 0 < v < 1.
func fraction(what string, v float64) error {
	if v > 0 && v < 1 {
		return nil
	}
	return valueError(what, -1, v, "> 0 and < 1")
}
