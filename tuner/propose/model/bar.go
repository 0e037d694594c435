package model

import (
	"math"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// labelNoise is the variance of the noise of labels −1 and 1.
const labelNoise = 0.05

// bar is the part of the space where a posterior is likely between two limits. The probability
// counts the two limits as independent, so that it stays above 0 where they are equal.
type bar struct {
	posterior *posterior
	low, top  float64 // targets, ∓Inf for none
	noise     float64 // variance of an outcome around the mean
	power     float64 // of the probability in scores
}

// bars returns one for each metric with a limit, and one for success if it is modelled.
func (o *Outlook) bars() []bar {
	var out []bar
	if o.engine.Blames() {
		out = append(out, bar{o.surfaces[o.engine.builder.objectives], 0, math.Inf(1), labelNoise, o.engine.labelPower()})
	}
	for i, p := range o.limited {
		if p != nil {
			s := o.engine.Event.Limited[i]
			out = append(out, bar{p, s.low, s.top, p.NoiseVariance(), 1})
		}
	}
	return out
}

// logProbability returns the logarithm of the probability of an outcome between the limits,
// with the mean and standard deviation of the outcome. That of a limit at infinity is 0.
func (b *bar) logProbability(mean, sd float64) float64 {
	return logNormal((mean-b.low)/sd) + logNormal((b.top-mean)/sd)
}

// slopes returns the derivatives of logProbability by mean and by sd.
func (b *bar) slopes(mean, sd float64) (byMean, bySD float64) {
	if !math.IsInf(b.low, -1) {
		z := (mean - b.low) / sd
		r := hazard(z) / sd
		byMean, bySD = byMean+r, bySD-r*z
	}
	if !math.IsInf(b.top, 1) {
		z := (b.top - mean) / sd
		r := hazard(z) / sd
		byMean, bySD = byMean-r, bySD-r*z
	}
	return byMean, bySD
}

// farTail is the argument below which the normal distribution is computed by its
// asymptotic series, with a relative error below 1e-6.
const farTail = -20

// logNormal returns log Φ(z).
func logNormal(z float64) float64 {
	if z < farTail {
		return -z*z/2 - math.Log(-z) - 0.5*math.Log(2*math.Pi) + math.Log1p(-1/(z*z)+3/(z*z*z*z))
	}
	if z > 0 {
		return math.Log1p(-0.5 * math.Erfc(z/math.Sqrt2))
	}
	return math.Log(0.5 * math.Erfc(-z/math.Sqrt2))
}

// hazard returns φ(z)/Φ(z), the derivative of log Φ.
func hazard(z float64) float64 {
	if z < farTail {
		return -z / (1 - 1/(z*z) + 3/(z*z*z*z))
	}
	return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) / (0.5 * math.Erfc(-z/math.Sqrt2))
}

// barProbe evaluates a bar at one point after another.
type barProbe struct {
	bar
	probe    *gp.Probe
	u        []float64
	mean, sd float64 // at the last point, without noise
}

// value returns logProbability at u.
func (p *barProbe) value(u []float64) (float64, error) {
	if p.u == nil {
		p.u = make([]float64, p.posterior.k.Dim())
	}
	copy(p.u, u)
	var err error
	if p.mean, p.sd, err = p.probe.Value(p.u); err != nil {
		return 0, err
	}
	return p.logProbability(p.mean, math.Sqrt(p.sd*p.sd+p.noise)), nil
}

// add adds the gradient at the point of the last value to g.
func (p *barProbe) add(g []float64) {
	mean, sd := p.probe.Gradient()
	all := math.Sqrt(p.sd*p.sd + p.noise)
	byMean, bySD := p.slopes(p.mean, all)
	for c := range min(len(g), len(mean)) {
		g[c] += byMean*mean[c] + bySD*(p.sd/all)*sd[c]
	}
}

// LimitedMetrics describes the models of the metrics with a limit, in order of name.
func (e *Engine) LimitedMetrics() []surrogate.LimitedMetric {
	var out []surrogate.LimitedMetric
	for i, p := range e.limited {
		c := e.builder.options.Constraints[i]
		m := surrogate.LimitedMetric{Metric: c.metric}
		for k := range e.Results.List {
			if got, known := limitOf(i).measure(&e.Results.List[k]); known {
				m.Results++
				if y := c.measured(got).Value; !(y >= c.low && y <= c.top) { // as it was told
					m.Broken++
				}
			}
		}
		if p != nil {
			s := e.Event.Limited[i]
			m.Noise = s.Target.Deviation(s.Mean, math.Sqrt(p.NoiseVariance()))
		}
		out = append(out, m)
	}
	return out
}

// Limited reports whether metrics with a limit are modelled.
func (e *Engine) Limited() bool { return len(e.Event.Limited) > 0 }

// Excess returns how far a result is beyond the limits, summed over the metrics, in units of
// targets. If a metric is not known or not modelled, ok is false.
func (e *Engine) Excess(r *Result) (sum float64, ok bool) {
	for i, s := range e.Event.Limited {
		m, known := limitOf(i).measure(r)
		if s == nil || !known {
			return 0, false
		}
		sum += s.excess(s.Target.exact(m.Value))
	}
	return sum, true
}
