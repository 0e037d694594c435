package propose

import "math"

// What a candidate that is near to a trial must promise for it to be run.
const (
	knownTo  = 0.6  // standard deviations of the noise
	nearTo   = 0.1  // length scales to the nearest inducing point
	quietest = 1e-4 // noise variance from which on what is near is a replicate, and welcome
)

// known tells of candidate i whether to run it would tell nothing: a trial was
// near, and by the model it is no better than the best and not uncertain, either
// by more than a part of the noise. So a study that has pinned an optimum down looks
// elsewhere. But suggestions that exploit go on pinning down: by a study's own
// measure they gain little, and yet regrets are orders of magnitude lower by it. Where
// noise is more than quietest, with several objectives, or where
// duplicates are welcome, nothing is known in this sense.
func (p *pool) known() func(i int) bool {
	a := p.a
	model, best := a.surfaces[0], math.Inf(-1)
	if len(a.b.spec.Objectives) > 1 || a.b.options.OnDuplicate == replicate || p.w.exploit || model.noise > quietest {
		return func(int) bool { return false }
	}
	for _, m := range a.e.bounds(a.b).mean {
		best = max(best, m)
	}
	resolved := knownTo * math.Sqrt(model.noise)
	return func(i int) bool {
		return p.variance[i] < resolved*resolved && p.mean[i]-best < resolved && model.near(p.xs[i], nearTo)
	}
}

// near tells whether an inducing point is within so many length scales of u, and of
// the same categories.
func (p *posterior) near(u []float64, distance float64) bool {
	u = p.lift(u)
	for j := range p.rank() {
		if s, h := p.k.terms(u, p.points[j*p.dim:][:p.dim]); s < distance*distance && h == 0 {
			return true
		}
	}
	return false
}
