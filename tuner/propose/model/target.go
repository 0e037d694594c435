package model

import (
	"math"
	"slices"
)

// Target converts measured values, where larger is better, to targets of a model. The
// target is g standardised, where
//
//	t = (y − Center)/Spread,  g(t) = t  or with a Power that of Yeo and Johnson
//
// as far as g is at least −badKnee and t at most goodKnee. Above, g grows with the logarithm,
// g(t) = g(goodKnee)·(1 + log(t/goodKnee)). Below the t = k where g is −badKnee, differences shrink
// but do not vanish. There g(t) = g(k) − log(1 + log(t/k)), for the largest float about 7 below.
// So g increases strictly, and Value inverts it exactly. A model learns no target worse than
// −badKnee (Of). Only the forecast of one trial uses g itself (exact). All numbers are finite.
type Target struct {
	Center float64 `json:"center"`
	Spread float64 `json:"spread"`
	Power  float64 `json:"power,omitempty"` // 0 for none
	Shift  float64 `json:"shift"`           // of g, for mean 0
	Scale  float64 `json:"scale"`           // and variance 1
}

const (
	goodKnee  = 20.0 // t from which on differences on the good side shrink
	badKnee   = 5.0  // −g from which on differences on the bad side shrink
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
	farthest  = 1e6 // ratio, for the arithmetic
)

// newTarget fits the transformation to values. The center is their median, and the spread 1.48
// median absolute deviations. With power, values that are skewed towards the bad side get a power.
func newTarget(values []float64, power bool) Target {
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
	if power {
		t.Power = t.fitPower(sorted)
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
			r := min(max(t.ratio(v), -farthest), farthest)
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
	case power == 0:
		return r
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
	case power == 0:
		return g
	case g >= 0:
		return math.Expm1(math.Log1p(power*g) / power)
	case power == 2:
		return -math.Expm1(-g)
	default:
		return -math.Expm1(math.Log(1-(2-power)*g) / (2 - power))
	}
}

// knee returns the ratio where g is −badKnee, and ceiling g at goodKnee.
func (t Target) knee() float64    { return unYeoJohnson(-badKnee, t.Power) }
func (t Target) ceiling() float64 { return yeoJohnson(goodKnee, t.Power) }

// shape returns g.
func (t Target) shape(y float64) float64 {
	r := t.ratio(y)
	switch k := t.knee(); {
	case r < k:
		return -badKnee - math.Log1p(math.Log(r/k))
	case r > goodKnee:
		return t.ceiling() * (1 + math.Log(r/goodKnee))
	}
	return yeoJohnson(r, t.Power)
}

// level returns g, at least −badKnee. On BBOB's functions in 5 dimensions a model that
// distinguishes the worst values takes longer.
func (t Target) level(y float64) float64 { return max(t.shape(y), -badKnee) }

// Of returns the target of a value, for a model to learn.
func (t Target) Of(y float64) float64 { return (t.level(y) - t.Shift) / t.Scale }

// exact returns the target of a value, without a limit on the bad side.
func (t Target) exact(y float64) float64 { return (t.shape(y) - t.Shift) / t.Scale }

// slope returns the derivative of Of, for standard errors. Where that is 0 it returns the
// one at the knee.
func (t Target) slope(y float64) float64 {
	return t.steepness(max(t.ratio(y), t.knee())) / t.Spread / t.Scale
}

// exactSlope returns the derivative of exact.
func (t Target) exactSlope(y float64) float64 { return t.steepness(t.ratio(y)) / t.Spread / t.Scale }

// steepness returns the derivative of g.
func (t Target) steepness(r float64) float64 {
	switch k := t.knee(); {
	case r < k:
		return 1 / (1 + math.Log(r/k)) / -r
	case r > goodKnee:
		return t.ceiling() / r
	case t.Power == 0:
		return 1
	case r >= 0:
		return math.Pow(1+r, t.Power-1)
	default:
		return math.Pow(1-r, 1-t.Power)
	}
}

// Value is the inverse of exact, within the precision of floats.
func (t Target) Value(z float64) (y float64) {
	g := z*t.Scale + t.Shift
	r := unYeoJohnson(g, t.Power)
	if top := t.ceiling(); g > top {
		r = goodKnee * math.Exp(min(g/top-1, 700))
	} else if g < -badKnee {
		r = t.knee() * math.Exp(min(math.Expm1(min(-badKnee-g, 10)), 700))
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
