package kernel

import "github.com/bkbtuner/bkb/internal/simd/panel"

// Distances says how an [Operator] computes r² = Σ_c (x_c − y_c)²/ℓ_c² of dense rows. It
// changes only the rounding, and the time by a quarter to a half.
//
// Direct differences lose nothing to cancellation. Expanded, r² = |x|² + |y|² − 2x·y for inputs
// that are moved to the mean of the centres and divided by ℓ. Results below 0 count as 0. Let R
// be the largest distance of an input from that mean in length scales, and u = 2⁻⁵³, or
// 2⁻²⁴ for Float32. Then the error of r² is, to first order, at most 6(d + 8)·u·R², and the
// relative error of k at most 3/2 of that (TestExpandedError).
//
// Kernels with an infinite slope at r² = 0, of other distances or of inner products, and
// sparse rows always have direct differences.
type Distances int

// These are the ways to compute distances. The zero value is AutoDistances.
const (
	// AutoDistances expands where R ≤ 5 (R ≤ 3 for Float32). That keeps the error bound of
	// Float32 in [Precision], and does not change the result of FALKON for λ down to 1e-9 . It
	// takes direct differences for each row that is farther out, and for the few centres that are
	// farther out. If many centres are, it takes them for all.
	AutoDistances Distances = iota
	// DirectDistances takes direct differences always.
	DirectDistances
	// ExpandedDistances expands wherever the kernel allows it, for any R.
	ExpandedDistances
)

// These are the largest R² of AutoDistances.
const (
	reach64 = 5 * 5
	reach32 = 3 * 3
)

// expand returns the function of p with the wanted distances, if it has one.
func (p *panelPrepared) expand(d Distances, reach float64) panel.Function {
	f := p.f
	if d == DirectDistances || !f.Expandable() {
		return f
	}
	f.Expand = true
	if d == AutoDistances {
		f.Reach = reach * p.unit
	}
	return f
}
