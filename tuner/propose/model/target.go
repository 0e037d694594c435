package model

import (
	"math"
	"slices"
)

// Target converts measured values, where larger is better, to targets of a model. The
// target is g standardised, where
//
//	t = (y − Center)/Spread,  g(t) = t  unless Compressed
//
// and where Compressed, g is t for −1 ≤ t ≤ goodKnee, −1 − log(−t) below, and goodKnee·(1 +
// log(t/goodKnee)) above. With a Power, it is that of Yeo and Johnson below goodKnee. Where
// neither applies, Knee bounds the linear part on either side, because results after the
// model event may differ in kind from those before it.
//
// Beyond the knee k on the bad side, where g is −badKnee (or −Knee), differences shrink but
// do not vanish. There g(t) = g(k) − log(1 + log(t/k)), for the largest float about 7 below
// the knee. So g increases strictly, and Value inverts it exactly. A model learns no target
// worse than −badKnee (Of). Only the forecast of one trial uses g itself (exact). All
// numbers are finite.
type Target struct {
	Center     float64 `json:"center"`
	Spread     float64 `json:"spread"`
	Compressed bool    `json:"compressed,omitempty"`
	Power      float64 `json:"power,omitempty"` // 0 for none
	Knee       float64 `json:"knee,omitempty"`  // 0 for none, or if the compression or a Power has one
	Shift      float64 `json:"shift"`           // of g, for mean 0
	Scale      float64 `json:"scale"`           // and variance 1
}

// Where the compression begins and ends.
const (
	goodKnee  = 20.0
	badKnee   = 5.0  // −g from which on differences on the bad side shrink
	tailAt    = 6.0  // robust standard deviations at which a value is in the tail
	keepsTo   = 1e6  // the same limit for values that are kept as they are
	typical   = 1.48 // standard deviations in a median absolute deviation, 1.4826
	spareRoom = 1e-12
)

// Powers that are tried.
const (
	mostPower = 2.0
	powerStep = 0.25
	// powerGain is the difference of log-likelihoods from which on a power is used. It is
	// that of a likelihood-ratio test at about 5 %, ½χ²₁(0.95) = 1.92.
	powerGain = 2
)

// newTarget fits the transformation to values. It includes the tail test. Values are
// compressed if the worst one is more than tailAt robust standard deviations (1.48 median
// absolute deviations) below the median, or the best one goodKnee above. Infinities fail
// it. With power, values that are skewed towards the bad side get a power instead (see fitPower).
// With keep there is no power, and values are compressed only beyond keepsTo on either side,
// for the arithmetic.
func newTarget(values []float64, keep, power bool) Target {
	sorted := slices.Clone(values)
	for i, v := range sorted {
		sorted[i] = clampFinite(v)
	}
	slices.Sort(sorted)
	t := Target{Center: quantile(sorted, 0.5), Spread: 1, Scale: 1}
	away := make([]float64, len(sorted))
	for i, v := range sorted {
		away[i] = math.Abs(v/2 - t.Center/2)
	}
	slices.Sort(away)
	spread := 2 * typical * quantile(away, 0.5)
	if !(spread > spareRoom*math.Abs(t.Center)) || spread < 1e-300 {
		spread = 2 * away[len(away)-1] // more than half are equal
	}
	if spread > spareRoom*math.Abs(t.Center) && spread >= 1e-300 {
		t.Spread = min(spread, math.MaxFloat64)
	}
	low, high := t.ratio(sorted[0]), t.ratio(sorted[len(sorted)-1])
	t.Compressed = low < -tailAt || high > goodKnee
	if keep {
		t.Compressed = low < -keepsTo || high > keepsTo
	} else if power {
		t.Power = t.fitPower(sorted)
		t.Compressed = t.Compressed && t.Power == 0
	}
	switch {
	case t.Compressed || t.Power > 0:
	case keep:
		t.Knee = keepsTo
	default:
		t.Knee = goodKnee
	}
	sum, square := 0.0, 0.0
	for _, v := range values {
		sum += t.level(v)
	}
	t.Shift = sum / float64(len(values))
	for _, v := range values {
		d := t.level(v) - t.Shift
		square += d * d
	}
	if sd := math.Sqrt(square / float64(len(values))); sd > 1e-9 {
		t.Scale = sd
	}
	return t
}

func clampFinite(v float64) float64 { return min(max(v, -math.MaxFloat64), math.MaxFloat64) }

// ratio returns t, without overflow and finite.
func (t Target) ratio(y float64) float64 {
	return clampFinite(2 * ((clampFinite(y)/2 - t.Center/2) / t.Spread))
}

// fitPower returns the power that makes the values most likely to be normal, or 0 if none
// is significantly better than 1.
func (t Target) fitPower(values []float64) float64 {
	likelihood := func(power float64) float64 {
		sum, square, jacobian := 0.0, 0.0, 0.0
		for _, v := range values {
			r := min(max(t.ratio(v), -keepsTo), keepsTo)
			g := yeoJohnson(r, power)
			sum, square = sum+g, square+g*g
			jacobian += math.Copysign(math.Log1p(math.Abs(r)), r)
		}
		n := float64(len(values))
		variance := max(square/n-sum/n*sum/n, spareRoom)
		return -n/2*math.Log(variance) + (power-1)*jacobian
	}
	best, most := 0.0, likelihood(1)+powerGain
	for power := 1 + powerStep; power <= mostPower; power += powerStep {
		if l := likelihood(power); l > most {
			best, most = power, l
		}
	}
	return best
}

func yeoJohnson(r, power float64) float64 {
	switch {
	case r >= 0:
		return math.Expm1(power*math.Log1p(r)) / power
	case power == 2:
		return -math.Log1p(-r)
	default:
		return -math.Expm1((2-power)*math.Log1p(-r)) / (2 - power)
	}
}

// unYeoJohnson is the inverse of yeoJohnson, for powers up to 2.
func unYeoJohnson(g, power float64) float64 {
	switch {
	case g >= 0:
		return math.Expm1(math.Log1p(power*g) / power)
	case power == 2:
		return -math.Expm1(-g)
	default:
		return -math.Expm1(math.Log(1-(2-power)*g) / (2 - power))
	}
}

// knee returns the ratio at which, on the bad side, g changes to the logarithm of the
// logarithm, and g there. It is −Inf if there is no such ratio.
func (t Target) knee() (r, g float64) {
	switch {
	case t.Power > 0:
		return unYeoJohnson(-badKnee, t.Power), -badKnee
	case t.Compressed:
		return -math.Exp(badKnee - 1), -badKnee
	case t.Knee > 0:
		return -t.Knee, -t.Knee
	default:
		return math.Inf(-1), math.Inf(-1)
	}
}

// ceiling returns the ratio at which the compression of the good side begins, and g there.
// It is +Inf if there is no such ratio.
func (t Target) ceiling() (r, g float64) {
	switch {
	case t.Power > 0:
		return goodKnee, yeoJohnson(goodKnee, t.Power)
	case t.Compressed:
		return goodKnee, goodKnee
	case t.Knee > 0:
		return t.Knee, t.Knee
	default:
		return math.Inf(1), math.Inf(1)
	}
}

// shape returns g.
func (t Target) shape(y float64) float64 {
	r := t.ratio(y)
	if k, g := t.knee(); r < k {
		return g - math.Log1p(math.Log(r/k))
	}
	if k, g := t.ceiling(); r > k {
		return g * (1 + math.Log(r/k))
	}
	switch {
	case t.Power > 0:
		return yeoJohnson(r, t.Power)
	case t.Compressed && r < -1:
		return -1 - math.Log(-r)
	default:
		return r
	}
}

// level returns g, and beyond the knee on the bad side the value at the knee. On BBOB's
// functions in 5 dimensions a model that distinguishes the worst values takes longer.
func (t Target) level(y float64) float64 {
	if t.Knee > 0 { // no value before the model event was this bad
		return t.shape(y)
	}
	_, low := t.knee()
	return max(t.shape(y), low)
}

// Of returns the target of a value, for a model to learn.
func (t Target) Of(y float64) float64 { return (t.level(y) - t.Shift) / t.Scale }

// exact returns the target of a value, without a limit on the bad side.
func (t Target) exact(y float64) float64 { return (t.shape(y) - t.Shift) / t.Scale }

// slope returns the derivative of Of, for standard errors. Where that is 0 it returns the
// one at the knee.
func (t Target) slope(y float64) float64 {
	if bad, _ := t.knee(); t.Knee == 0 && t.ratio(y) < bad {
		return t.steepness(bad) / t.Spread / t.Scale
	}
	return t.exactSlope(y)
}

// exactSlope returns the derivative of exact.
func (t Target) exactSlope(y float64) float64 { return t.steepness(t.ratio(y)) / t.Spread / t.Scale }

// steepness returns the derivative of g.
func (t Target) steepness(r float64) float64 {
	bad, _ := t.knee()
	good, top := t.ceiling()
	switch {
	case r < bad:
		return 1 / (1 + math.Log(r/bad)) / -r
	case r > good:
		return top / r
	case t.Power > 0 && r >= 0:
		return math.Pow(1+r, t.Power-1)
	case t.Power > 0:
		return math.Pow(1-r, 1-t.Power)
	case t.Compressed && r < -1:
		return -1 / r
	default:
		return 1
	}
}

// Value is the inverse of exact, within the precision of floats.
func (t Target) Value(z float64) (y float64) {
	g := z*t.Scale + t.Shift
	bad, low := t.knee()
	good, top := t.ceiling()
	r := g
	switch {
	case g < low:
		r = bad * math.Exp(min(math.Expm1(min(low-g, 10)), 700))
	case g > top:
		r = good * math.Exp(min(g/top-1, 700))
	case t.Power > 0:
		r = unYeoJohnson(g, t.Power)
	case t.Compressed && g < -1:
		r = -math.Exp(-1 - g)
	}
	return clampFinite(t.Center + clampFinite(clampFinite(r)*t.Spread))
}

// Deviation converts a standard deviation of targets at z to units of the values.
func (t Target) Deviation(z, sd float64) float64 {
	return min(max(sd/t.exactSlope(t.Value(z)), 0), math.MaxFloat64)
}

// spread converts a standard deviation of targets at z to one of the values, for intervals
// of 95 %. It is that of the longer side.
func (t Target) spread(z, sd float64) float64 {
	y, w := t.Value(z), normal95*sd
	return min(max(y-t.Value(z-w), t.Value(z+w)-y)/normal95, math.MaxFloat64)
}

// quantile returns a quantile of sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[i]
	}
	f := at - float64(i)
	return sorted[i]*(1-f) + sorted[i+1]*f
}
