package kernel

import "math"

// StatisticKind is the kind of a [Statistic].
type StatisticKind int

// These are the kinds of pair statistics, with weights w_c.
const (
	SquaredDistance StatisticKind = iota // Σ_c w_c (x_c − y_c)²
	Manhattan                            // Σ_c w_c |x_c − y_c|
	InnerProduct                         // Σ_c w_c x_c y_c
	Mismatches                           // Σ_c w_c [x_c ≠ y_c]
)

// Statistic is a number per pair, of which an [Elementwise] kernel is a function.
// Weights has length 1 (the same for every coordinate) or d.
//
// Distances are sums of direct differences, not ‖x‖² + ‖y‖² − 2xᵀy. They lose nothing
// to cancellation, are exactly 0 for equal inputs and never negative. An [Operator] may
// compute them the other way, see [Distances].
type Statistic struct {
	Kind    StatisticKind
	Weights []float64
	Norms   bool // Map also needs s(x, x) and s(y, y)
}

// pair returns s(a, b). It sums in the order of the coordinates, like fillRow.
func (st *Statistic) pair(a, b vector) float64 {
	if !a.sparse && !b.sparse && a.f32 == nil && b.f32 == nil {
		return st.densePair(a.f64, b.f64)
	}
	uniform := len(st.Weights) == 1
	sum := 0.0
	for w := walk(a, b); ; {
		c, x, y, ok := w.next()
		if !ok {
			break
		}
		t := st.Kind.term(x, y)
		if !uniform {
			t *= st.Weights[c]
		}
		sum += t
	}
	if uniform {
		sum *= st.Weights[0]
	}
	return sum
}

// densePair is pair for dense float64 vectors.
func (st *Statistic) densePair(x, y []float64) float64 {
	var s [1]float64
	st.fillRow(s[:], x, y)
	return s[0]
}

// term is the contribution of one coordinate, without its weight.
func (k StatisticKind) term(x, y float64) float64 {
	switch k {
	case SquaredDistance:
		return (x - y) * (x - y)
	case Manhattan:
		return math.Abs(x - y)
	case InnerProduct:
		return x * y
	case Mismatches:
		if x != y {
			return 1
		}
		return 0
	}
	panic("kernel: precondition: unknown statistic")
}

// slope returns the derivative of term with respect to x.
func (k StatisticKind) slope(x, y float64) float64 {
	switch k {
	case SquaredDistance:
		return 2 * (x - y)
	case Manhattan:
		switch {
		case x > y:
			return 1
		case x < y:
			return -1
		}
		return 0
	case InnerProduct:
		return y
	default:
		return 0
	}
}

// weightPower returns the p with w = ℓ^−p. With it the kernel is a function of x/ℓ where
// coordinates have a length.
func (k StatisticKind) weightPower() int {
	switch k {
	case SquaredDistance, InnerProduct:
		return 2
	default:
		return 1
	}
}
