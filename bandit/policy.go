package bandit

import (
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Policy chooses arms of a finite set and learns from rewards, which it wants
// large. It is a state machine: what it is follows, to the bit, from its
// configuration and the sequence of Pull, Observe, Cancel and SetArms.
//
// A refused call, with an error, leaves it as it was. A Policy is used by one
// goroutine at a time.
type Policy interface {
	// Next returns the decision for the next step. It changes nothing: called
	// again it answers the same. Errors: [ErrBatchFull]; a kernel found not
	// positive semi-definite since.
	Next() (Decision, error)
	// Best returns the arm with the largest posterior mean, the lowest of
	// equals: what to keep when the search ends. Its Gap is the largest UCB of
	// all arms less the LCB of this one: while confidence bounds hold, it is
	// worse than the best arm by no more.
	Best() (Decision, error)
	// Pull takes note that an arm is being pulled whose reward will come later:
	// σ shrinks, and the mean is told nothing. Errors: [*ArmError].
	Pull(arm int) error
	// Observe takes rewards of one arm. Each resolves a pending pull of the
	// arm, if there is one, or else counts as a pull of its own. Errors:
	// [*ArmError], [*ValueError], [*EmptyError].
	Observe(arm int, y ...float64) error
	// Cancel takes back a pending pull. Errors: [*ArmError], [ErrNotPending].
	Cancel(arm int) error
	// Pending returns the number of pulls without reward.
	Pending() int
	// Steps returns the number of pulls so far, pending ones included.
	Steps() int
	// Arms returns the arms.
	Arms() kernel.Rows
	// SetArms exchanges the arms. All that was observed stays known; arms are
	// numbered anew. Errors: [ErrPending], and those of a constructor.
	SetArms(arms kernel.Rows) error
}

// Decision is what a policy answers: an arm with its confidence bounds, and
// the state that they come from.
type Decision struct {
	Arm    int
	Mean   float64 // μ̃
	StdDev float64 // σ̃, in the units of the rewards
	UCB    float64 // μ̃ + Beta·σ̃
	// Beta is the width b of the bounds in standard deviations: β̃/√λ in the
	// notation of thesis Theorem 21.
	Beta float64
	// TheoryBeta is the b of thesis Theorem 21, computed from the data, whatever
	// Beta is; see Config.Report.
	TheoryBeta float64
	// Step is the number of pulls before this one, pending ones included.
	Step int
	// InducingPoints is m; for an exact policy the number of pulls.
	InducingPoints int
	// EffectiveDimension estimates d_eff = Σ_s σ̃²(x_s)/λ of all pulls, thesis
	// (7.3). BBKB gives that at the start of its batch.
	EffectiveDimension float64
	// InformationGain is Σ log(1 + σ̃²_{s−1}(x_s)/λ) of all pulls: log det(I +
	// K/λ) if variances are exact.
	InformationGain float64
	// Gap is UCB − LCB = 2·Beta·σ̃ at the arm: while the bounds hold, the most
	// that pulling it can cost in comparison with the best arm.
	Gap float64
	// MaxBatch is the number of pulls that BBKB's rule, ratio of variances ≤
	// C̃, allows at the arm now, without feedback in between; at least 1. Pending
	// pulls have used up part of it: Π(1 + σ̃²/λ) over them.
	MaxBatch int
	// Jitter is what Thompson sampling added to the posterior covariance of its
	// candidates, relative to the mean variance, for it to be factored: 0 unless
	// rounding called for it, and for other policies.
	Jitter float64
}

// LCB returns the lower confidence bound.
func (d Decision) LCB() float64 { return d.UCB - 2*d.Beta*d.StdDev }

// maxBatch returns how often rls can be added without the sum, of which used is
// spent, exceeding ratio − 1; at least 1.
func maxBatch(ratio, used, rls float64) int {
	n := math.Floor((ratio - 1 - used) / rls)
	if !(n > 1) {
		return 1
	}
	return int(min(n, math.MaxInt32))
}
