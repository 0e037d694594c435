package bandit

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Policy chooses arms of a finite set and learns from rewards, which it maximises. It
// is a state machine. Its configuration and the sequence of Pull, Observe and
// Cancel determine it to the bit.
//
// A refused call, with an error, leaves it as it was. A Policy is used by one
// goroutine at a time.
type Policy interface {
	// Next returns the decision for the next step. It changes nothing, so a second call
	// returns the same. It returns [ErrBatchFull], or an error if the kernel has proved
	// not positive semi-definite.
	Next() (Decision, error)
	// Best returns the arm with the largest posterior mean, the lowest of equals. Keep
	// it when the search ends. Its Gap is the largest UCB of all arms less the LCB of
	// this one. While the confidence bounds hold, it is worse than the best arm by no
	// more than that.
	Best() (Decision, error)
	// Pull records that an arm is being pulled and its reward will come later. σ
	// shrinks, and the mean does not change. It returns an [*ArmError].
	Pull(arm int) error
	// Observe takes rewards of one arm. Each resolves a pending pull of the arm, if
	// there is one, or else counts as a pull of its own. Its errors are [*ArmError],
	// [*ValueError] and [*EmptyError].
	Observe(arm int, y ...float64) error
	// Cancel takes back a pending pull. It returns an [*ArmError] or [ErrNotPending].
	Cancel(arm int) error
	// Pending returns the number of pulls without reward.
	Pending() int
	// Steps returns the number of pulls so far, pending ones included.
	Steps() int
	// Arms returns the arms.
	Arms() kernel.Rows
}

// Decision is an arm with its confidence bounds, and the state that they come from.
type Decision struct {
	Arm    int
	Mean   float64 // μ̃
	StdDev float64 // σ̃, in the units of the rewards
	UCB    float64 // μ̃ + Beta·σ̃
	// Beta is the width b of the bounds in standard deviations, β̃/√λ in the notation
	// of Theorem 21 of Carratino (2020).
	Beta float64
	// TheoryBeta is the b of Theorem 21, computed from the data for any Beta, with its Norm or 1.
	TheoryBeta float64
	// Step is the number of pulls before this one, pending ones included.
	Step int
	// InducingPoints is m.
	InducingPoints int
	// EffectiveDimension estimates d_eff = Σ_s σ̃²(x_s)/λ of all pulls, (7.3) of
	// Carratino (2020). BBKB gives the value at the start of its batch.
	EffectiveDimension float64
	// InformationGain is Σ log(1 + σ̃²_{s−1}(x_s)/λ) of all pulls. If variances are
	// exact, it is log det(I + K/λ).
	InformationGain float64
	// Gap is UCB − LCB = 2·Beta·σ̃ at the arm. While the bounds hold, pulling it costs
	// at most that in comparison with the best arm.
	Gap float64
	// MaxBatch is the number of pulls, at least 1, that BBKB's rule (ratio of
	// variances ≤ C̃) now allows at the arm without feedback in between. Pending pulls
	// have used Π(1 + σ̃²/λ) of the ratio.
	MaxBatch int
}

// LCB returns the lower confidence bound.
func (d Decision) LCB() float64 { return d.UCB - 2*d.Beta*d.StdDev }

// maxBatch returns how often rls can be added to used without the sum exceeding
// ratio − 1. It is at least 1.
func maxBatch(ratio, used, rls float64) int {
	n := math.Floor((ratio - 1 - used) / rls)
	if !(n > 1) {
		return 1
	}
	return int(min(n, math.MaxInt32))
}
