package model

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Outlook has an engine's posteriors with running, waiting and chosen trials included.
// Variances shrink as if these trials had been observed, and means move with their reports.
// The engine itself stays unchanged.
type Outlook struct {
	posteriors
	engine *Engine
	own    bool // the posteriors are separate from the engine's
}

// maxPending is the maximum number of pending trials that an outlook includes, the latest
// ones. Each costs O(m²).
const maxPending = 512

// Outlook returns an outlook with the pending trials.
func (e *Engine) Outlook() *Outlook {
	o := e.Past()
	open := e.Results.Pending
	open = open[max(0, len(open)-maxPending):]
	for _, p := range open {
		o.hear(p)
	}
	for _, p := range open {
		o.Pull(p.X)
	}
	if e.builder.objectives > 1 {
		o.pullFailed()
	}
	return o
}

// pullFailed makes trials without outcome pending for the objectives. Nothing else would tell their
// places from unknown ones, where the expected gain in hypervolume is largest.
func (o *Outlook) pullFailed() {
	for i, room := len(o.engine.Results.List)-1, maxPending; i >= 0 && room > 0; i-- {
		r := &o.engine.Results.List[i]
		if !r.Failed || r.Y != nil {
			continue
		}
		room--
		o.detach()
		for _, p := range o.surfaces[:o.engine.builder.objectives] {
			p.pull(r.X)
		}
	}
}

// Past returns an outlook without pending trials.
func (e *Engine) Past() *Outlook {
	return &Outlook{engine: e, posteriors: e.posteriors}
}

// hear adds the reports of a running trial.
func (o *Outlook) hear(p Pending) {
	for j := range o.engine.builder.objectives {
		for _, s := range o.engine.Event.Surfaces[j].lower(nil, p.X, p.Low, j, runs) {
			o.detach()
			o.surfaces[j].observe(s)
		}
	}
}

// Pull makes x pending.
func (o *Outlook) Pull(x []float64) {
	o.detach()
	for _, p := range slices.Concat(o.surfaces, o.limited) {
		if p != nil {
			p.pull(x)
		}
	}
}

// detach gives the outlook its own copy of the surfaces.
func (o *Outlook) detach() {
	if o.own {
		return
	}
	o.posteriors, o.own = o.each((*posterior).fork), true
}

// each returns copies, each made by copied.
func (p posteriors) each(copied func(*posterior) *posterior) posteriors {
	p.surfaces, p.limited = slices.Clone(p.surfaces), slices.Clone(p.limited)
	for _, list := range [][]*posterior{p.surfaces, p.limited} {
		for i, one := range list {
			if one != nil {
				list[i] = copied(one)
			}
		}
	}
	return p
}

// Doubts reports whether some configurations may be infeasible, by the model.
func (o *Outlook) Doubts() bool { return o.engine.Blames() || o.engine.Limited() }

// LogFeasible returns the logarithm of the probability that the configuration at each row
// of x is feasible. Where metrics with a limit are modelled, it is the sum of that of
// success and those of keeping each limit.
func (o *Outlook) LogFeasible(x *kernel.Points[float64]) []float64 {
	out := make([]float64, x.Len())
	if o.engine.Blames() && !o.engine.Limited() {
		mean, variance := o.surfaces[o.engine.builder.objectives].predict(x)
		for i, m := range mean {
			p := 0.5 * math.Erfc(-m/math.Sqrt(2*(variance[i]+labelNoise)))
			out[i] = o.engine.labelPower() * math.Log(max(p, 1e-6))
		}
		return out
	}
	for _, b := range o.bars() {
		mean, variance := b.posterior.predict(x)
		for i, m := range mean {
			out[i] += b.power * b.logProbability(m, math.Sqrt(variance[i]+b.noise))
		}
	}
	return out
}

// Possible reports for each row of x whether the configuration may be feasible. It may if the
// confidence interval of each metric with a limit, and that of success, reaches within the
// limits. Intervals are a number of standard deviations of the mean on either side.
func (o *Outlook) Possible(x *kernel.Points[float64], width float64) []bool {
	out := slices.Repeat([]bool{true}, x.Len())
	for _, b := range o.bars() {
		mean, variance := b.posterior.predict(x)
		for i, m := range mean {
			w := width * math.Sqrt(variance[i])
			out[i] = out[i] && m+w >= b.low && m-w <= b.top
		}
	}
	return out
}

// Lengths returns the length scales of the first objective. Those of categories have no
// meaning here.
func (o *Outlook) Lengths() []float64 {
	k := o.surfaces[0].k
	out := make([]float64, len(o.engine.builder.space.Axes()))
	for c := range out {
		out[c] = k.LengthScale(c)
	}
	return out
}

// Probe returns a Probe of the first objective, or of the logarithm of the expected improvement on
// best if that is not nil. Where metrics with a limit are modelled, it adds the logarithm of the
// probability that a configuration is feasible to the mean.
func (o *Outlook) Probe(best *float64) *Probe {
	p := o.surfaces[0]
	out := &Probe{probe: p.Probe(), u: make([]float64, p.k.Dim())}
	if best != nil {
		out.probe = &bandit.Improvement{Slope: out.probe, Best: *best}
	}
	if o.engine.Limited() {
		for _, b := range o.bars() {
			out.bars = append(out.bars, barProbe{bar: b, probe: b.posterior.Probe()})
		}
	}
	return out
}

// Explain returns the prediction at x, and for each objective an optimistic bound that is a
// number of standard deviations better, all in the objectives' units.
func (o *Outlook) Explain(x, widths []float64) (p surrogate.Prediction, bound []float64) {
	row := kernel.NewPoints(1, len(x), x)
	for j := range o.engine.builder.objectives {
		m, v := o.surfaces[j].predict(row)
		sd, t := math.Sqrt(v[0]), &o.engine.Event.Surfaces[j].Target
		mean, raw := o.engine.expected(j, m[0]), o.engine.Show(j, m[0])
		p.Mean = append(p.Mean, mean)
		p.StdDev = append(p.StdDev, t.Deviation(m[0], sd))
		p.Noise = append(p.Noise, t.Deviation(m[0], math.Sqrt(o.surfaces[j].NoiseVariance())))
		if widths != nil {
			bound = append(bound, mean+(o.engine.Show(j, m[0]+widths[j]*sd)-raw))
		}
	}
	return p, bound
}

// Outcome returns the standard deviation of an outcome of the first objective at x, for
// which about 95 % of outcomes are within 1.96 of it from the mean. It is calibrated. If
// the interval is not symmetric in the objective's unit, its longer side counts.
func (o *Outlook) Outcome(x []float64) float64 {
	m, v := o.surfaces[0].predict(kernel.NewPoints(1, len(x), x))
	return o.engine.Calibration.spread(&o.engine.Event.Surfaces[0].Target, m[0], v[0]+o.engine.surfaces[0].NoiseVariance())
}

// Probe predicts the first objective at one point after another, with gradients if they are
// wanted.
type Probe struct {
	probe bandit.Slope
	u     []float64 // the point, with its fidelity
	bars  []barProbe
	sum   []float64 // ∇μ with that of the bars
}

// Value returns μ(u) and σ(u) in units of targets, and keeps u.
func (p *Probe) Value(u []float64) (mean, sd float64, err error) {
	copy(p.u, u)
	if mean, sd, err = p.probe.Value(p.u); err != nil {
		return 0, 0, err
	}
	for i := range p.bars {
		more, err := p.bars[i].value(u)
		if err != nil {
			return 0, 0, err
		}
		mean += more
	}
	return mean, sd, nil
}

// Gradient returns ∇μ and ∇σ in ordered coordinates, and 0 in others, at the point of
// the last Value, until the next call.
func (p *Probe) Gradient() (mean, sd []float64) {
	mean, sd = p.probe.Gradient()
	if len(p.bars) == 0 {
		return mean, sd
	}
	p.sum = append(p.sum[:0], mean...)
	for i := range p.bars {
		p.bars[i].add(p.sum)
	}
	return p.sum, sd
}

// Forecast predicts the outcome of one running trial, in the objective's unit.
type Forecast struct {
	Mean, StdDev float64 // of its value at the end, without noise
	Bound        float64 // the optimistic one
	Incumbent    float64 // the mean at the best of the trials that have outcomes
}

// Forecast predicts the outcome of the one objective of a running trial. It is the
// posterior at full fidelity with the reports of this trial, without those of other running
// ones. Its bound is width standard deviations better than its mean. The caller sets the
// incumbent. If the trial is not running or has not reported, ok is false. It costs O(m²).
func (e *Engine) Forecast(trial int, width float64) (f Forecast, ok bool) {
	i := slices.IndexFunc(e.Results.Pending, func(p Pending) bool { return p.Trial == trial })
	if i < 0 {
		return f, false
	}
	s, run := &e.Event.Surfaces[0], &e.Results.Pending[i]
	told := s.lower(nil, run.X, run.Low, 0, foretold)
	if len(told) == 0 {
		return f, false
	}
	p := e.surfaces[0].fork()
	for _, o := range told {
		p.observe(o)
	}
	mean, variance := p.predict(kernel.NewPoints(1, len(run.X), run.X))
	sd := math.Sqrt(variance[0])
	return Forecast{
		Mean: e.expected(0, mean[0]), StdDev: s.Target.Deviation(mean[0], sd), Bound: e.Show(0, mean[0]+width*sd),
	}, true
}
