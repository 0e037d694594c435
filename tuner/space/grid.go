package space

import (
	"math"
	"math/big"
	"strconv"
	"strings"
)

// gridAxis is a float range with a step. Its points low + k·step ≤ high are computed in
// decimal, so that 0.1 three times is 0.3. Point k of n has the k-th of n equal cells.
type gridAxis struct {
	low, high, step float64
	n               uint64
	// (a + k·b) · 10ᵉ is point k, exactly.
	a, b     *big.Int
	exponent int
	quick    bool // all numbers fit float64's exact range
}

// newGridAxis returns the grid. It returns nil if the grid has more than MaxGridPoints or
// its points are not distinct in float64.
func newGridAxis(low, high, step float64) *gridAxis {
	if !(step >= 2*ulp(max(math.Abs(low), math.Abs(high)))) {
		return nil
	}
	g := &gridAxis{low: low, high: high, step: step}
	lowDigits, lowExponent := decimal(low)
	highDigits, highExponent := decimal(high)
	stepDigits, stepExponent := decimal(step)
	g.exponent = min(lowExponent, highExponent, stepExponent)
	g.a = shift(lowDigits, lowExponent-g.exponent)
	g.b = shift(stepDigits, stepExponent-g.exponent)
	top := shift(highDigits, highExponent-g.exponent)
	count := new(big.Int).Sub(top, g.a)
	count.Quo(count, g.b)
	if count.Cmp(big.NewInt(MaxGridPoints)) >= 0 {
		return nil
	}
	g.n = count.Uint64() + 1
	g.quick = g.a.BitLen() <= 53 && top.BitLen() <= 53 && g.b.BitLen() <= 53 && -22 <= g.exponent && g.exponent <= 22
	return g
}

// decimal returns the shortest decimal that reads back as x.
func decimal(x float64) (digits *big.Int, exponent int) {
	text := strconv.FormatFloat(x, 'e', -1, 64)
	significand, power, _ := strings.Cut(text, "e")
	exponent, _ = strconv.Atoi(power) // written by FormatFloat
	whole, fraction, _ := strings.Cut(significand, ".")
	digits, _ = new(big.Int).SetString(whole+fraction, 10)
	return digits, exponent - len(fraction)
}

// shift returns d·10ᵉ, e ≥ 0.
func shift(d *big.Int, e int) *big.Int {
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(e)), nil)
	return power.Mul(power, d)
}

// at returns point k, the float64 closest to the decimal.
func (g *gridAxis) at(k uint64) float64 {
	if g.quick {
		m := float64(g.a.Int64() + int64(k)*g.b.Int64())
		if g.exponent < 0 {
			return m / math.Pow10(-g.exponent)
		}
		return m * math.Pow10(g.exponent)
	}
	m := new(big.Int).SetUint64(k)
	m.Mul(m, g.b).Add(m, g.a)
	x, _ := strconv.ParseFloat(m.String()+"e"+strconv.Itoa(g.exponent), 64) // between low and high
	return x
}

// closest returns the point closest to x, low ≤ x ≤ high.
func (g *gridAxis) closest(x float64) uint64 {
	ratio := (x - g.low) / g.step
	if math.IsInf(x-g.low, 0) {
		ratio = (x/4 - g.low/4) / (g.step / 4)
	}
	guess := min(uint64(math.RoundToEven(ratio)), g.n-1)
	best := guess
	for _, k := range []uint64{max(guess, 1) - 1, min(guess+1, g.n-1)} {
		if math.Abs(g.at(k)-x) < math.Abs(g.at(best)-x) {
			best = k
		}
	}
	return best
}

func (g *gridAxis) encode(v Value) (float64, bool) {
	x, ok := v.AsFloat()
	if !ok || !(g.low <= x && x <= g.high) {
		return 0, false
	}
	k := g.closest(x)
	return cellMiddle(k, g.n), Float(g.at(k)) == v
}

func (g *gridAxis) decode(u float64) Value { return Float(g.at(cellAt(u, g.n))) }

func (g *gridAxis) levels() uint64 { return g.n }
