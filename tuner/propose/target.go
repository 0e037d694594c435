package propose

import (
	"math"
	"slices"
)

// target is how measured values, larger being better, become targets of a model:
// g standardised, where
//
//	t = (y − Center)/Spread,  g(t) = t  unless Compressed
//
// and where Compressed, g is t for t ≥ −1, −1 − log(−t) from there to −Floor,
// and constant below; on the good side it is t to Ceiling and Ceiling +
// log(t/Ceiling)·… beyond. All numbers are finite.
type target struct {
	Center     float64 `json:"center"`
	Spread     float64 `json:"spread"`
	Compressed bool    `json:"compressed,omitempty"`
	Power      float64 `json:"power,omitempty"` // 0 for none
	Shift      float64 `json:"shift"`           // of g, for mean 0
	Scale      float64 `json:"scale"`           // and variance 1
}

// Where the compression begins and ends.
const (
	goodKnee  = 20.0
	badFloor  = 5.0  // g ≥ −badFloor
	tailAt    = 6.0  // robust standard deviations at which a value is in the tail
	keepsTo   = 1e6  // the same for values that are to be kept as they are
	typical   = 1.48 // standard deviations in a median absolute deviation, 1.4826
	spareRoom = 1e-12
)

// Powers that are tried.
const (
	mostPower = 2.0
	powerStep = 0.25
	// powerGain is the difference of log-likelihoods from which on a power is
	// taken: that of a likelihood-ratio test at about 5 %, ½χ²₁(0.95) = 1.92.
	powerGain = 2
)

// newTarget fits the transformation to values. It is the tail test, too: values
// are compressed if the worst one is more than tailAt robust standard deviations
// (1.48 median absolute deviations) below the median, or the best one goodKnee
// above. Infinities fail it. Values that are skewed towards the bad side get a
// power instead (see fitPower). With keep they have none and are compressed only
// beyond keepsTo on either side, for the arithmetic's sake.
func newTarget(values []float64, keep bool) target {
	sorted := slices.Clone(values)
	for i, v := range sorted {
		sorted[i] = clampFinite(v)
	}
	slices.Sort(sorted)
	t := target{Center: quantile(sorted, 0.5), Spread: 1, Scale: 1}
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
	} else if t.Power = t.fitPower(sorted); t.Power > 0 {
		t.Compressed = false
	}
	sum, square := 0.0, 0.0
	for _, v := range values {
		sum += t.shape(v)
	}
	t.Shift = sum / float64(len(values))
	for _, v := range values {
		d := t.shape(v) - t.Shift
		square += d * d
	}
	if sd := math.Sqrt(square / float64(len(values))); sd > 1e-9 {
		t.Scale = sd
	}
	return t
}

func clampFinite(v float64) float64 { return min(max(v, -math.MaxFloat64), math.MaxFloat64) }

// ratio is t, without overflow and finite.
func (t target) ratio(y float64) float64 {
	return clampFinite(2 * ((clampFinite(y)/2 - t.Center/2) / t.Spread))
}

// fitPower is the power that makes the values most likely to be normal, or 0 if
// none is significantly better than 1.
func (t target) fitPower(values []float64) float64 {
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

// shape is g.
func (t target) shape(y float64) float64 {
	r := t.ratio(y)
	switch {
	case t.Power > 0 && r > goodKnee:
		return yeoJohnson(goodKnee, t.Power) * (1 + math.Log(r/goodKnee))
	case t.Power > 0:
		return max(yeoJohnson(r, t.Power), -badFloor)
	case !t.Compressed:
		return r
	case r < -1:
		return max(-1-math.Log(-r), -badFloor)
	case r > goodKnee:
		return goodKnee * (1 + math.Log(r/goodKnee))
	default:
		return r
	}
}

// of is the target of a value.
func (t target) of(y float64) float64 { return (t.shape(y) - t.Shift) / t.Scale }

// slope is the derivative of of, for standard errors; where it is 0 that of the
// end of the curve.
func (t target) slope(y float64) float64 {
	r, s := t.ratio(y), 1.0
	switch {
	case t.Power > 0 && r > goodKnee:
		s = yeoJohnson(goodKnee, t.Power) / r
	case t.Power > 0 && r >= 0:
		s = math.Pow(1+r, t.Power-1)
	case t.Power > 0:
		s = math.Pow(1-max(r, unYeoJohnson(-badFloor, t.Power)), 1-t.Power)
	case t.Compressed:
		switch {
		case r < -1:
			s = 1 / min(-r, math.Exp(badFloor-1))
		case r > goodKnee:
			s = goodKnee / r
		}
	}
	return s / t.Spread / t.Scale
}

// value is the inverse of of, and deviation that of a standard deviation there.
func (t target) value(z float64) (y float64) {
	g := z*t.Scale + t.Shift
	r := g
	switch {
	case t.Power > 0:
		if knee := yeoJohnson(goodKnee, t.Power); g > knee {
			r = goodKnee * math.Exp(min(g/knee-1, 700))
		} else {
			r = unYeoJohnson(max(g, -badFloor), t.Power)
		}
	case t.Compressed:
		switch {
		case g < -1:
			r = -math.Exp(min(-1-g, badFloor-1))
		case g > goodKnee:
			r = goodKnee * math.Exp(min(g/goodKnee-1, 700))
		}
	}
	return clampFinite(t.Center + clampFinite(r*t.Spread))
}

func (t target) deviation(z, sd float64) float64 {
	return min(max(sd/t.slope(t.value(z)), 0), math.MaxFloat64)
}

// quantile of sorted values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 >= len(sorted) {
		return sorted[i]
	}
	f := at - float64(i)
	return sorted[i]*(1-f) + sorted[i+1]*f
}
