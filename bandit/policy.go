package bandit

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Policy chooses arms of a finite set and learns from rewards, which it maximises. Its
// configuration and the sequence of Pull, Observe and Cancel determine it to the bit. A
// refused call, with an error, leaves it as it was. One goroutine at a time uses it.
type Policy interface {
	// Next returns the decision for the next step and changes nothing. It returns
	// [ErrBatchFull], or an error if the kernel has proved not positive semi-definite.
	Next() (Decision, error)
	// Best returns the arm with the largest posterior mean, the lowest of equals. Its Gap is
	// the largest UCB of all arms less the LCB of this one. While the confidence bounds hold,
	// it is worse than the best arm by no more than that.
	Best() (Decision, error)
	// Pull records that an arm is being pulled and its reward will come later. σ shrinks, and
	// the mean does not change. It returns an [*ArmError].
	Pull(arm int) error
	// Observe takes rewards of one arm. Each resolves a pending pull of the arm, or else counts
	// as a pull of its own. Its errors are [*ArmError], [*ValueError] and [*EmptyError].
	Observe(arm int, y ...float64) error
	// Cancel takes back a pending pull. It returns an [*ArmError] or [ErrNotPending].
	Cancel(arm int) error
	// Pending returns the number of pulls without reward, and Steps that of all pulls.
	Pending() int
	Steps() int
	Arms() kernel.Rows
}

// Decision is an arm with its confidence bounds, and the state that they come from. Step, d_eff
// and the gain are those before the pull, with pending pulls counted.
type Decision struct {
	Arm                int
	Mean, StdDev       float64 // μ̃ and σ̃, in the units of the rewards
	UCB                float64 // μ̃ + Beta·σ̃
	Beta               float64 // b, which is β̃/√λ in the notation of Theorem 21 of Carratino (2020)
	TheoryBeta         float64 // the b of Theorem 21, computed from the data for any Beta, with its Norm or 1
	Step               int
	InducingPoints     int     // m
	EffectiveDimension float64 // estimate of (7.3) of Carratino (2020), of BBKB at the start of its batch
	InformationGain    float64 // G_t, which is log det(I + K/λ) if variances are exact
	// Gap is UCB − LCB = 2·Beta·σ̃ at the arm. While the bounds hold, pulling it costs at most that in
	// comparison with the best arm.
	Gap float64
	// MaxBatch is the number of pulls, at least 1, that BBKB's rule (ratio of variances ≤ C̃) now
	// allows at the arm without feedback in between. Pending pulls have used Π(1 + σ̃²/λ) of the ratio.
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
