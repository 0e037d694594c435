package model

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Surface is the model of one quantity in a model event.
type Surface struct {
	Target     Target    `json:"target"`
	Constant   float64   `json:"constant,omitempty"` // of the kernel, the prior variance of the process' mean
	Theta      []float64 `json:"theta"`              // its other hyper-parameters
	Noise      float64   `json:"noise"`
	Mean       float64   `json:"mean"`
	Dictionary []int     `json:"dictionary"` // inducing points, by trial
	// Rows are the sample numbers of these trials, if they are not all the first. Epochs
	// are those of their late results, 0 for the outcome, if they are not all outcomes.
	Rows      []int     `json:"rows,omitempty"`
	Epochs    []int     `json:"epochs,omitempty"`
	Fidelity  *fidelity `json:"fidelity,omitempty"`
	Capped    bool      `json:"capped,omitempty"`
	Dimension float64   `json:"dimension"`      // effective
	Gain      float64   `json:"gain,omitempty"` // log det V, where all inputs are inducing points
	// Draw describes how the inducing points were drawn.
	Draw surrogate.Draw `json:"draw,omitzero"`

	low, top  float64 // limits of a metric as targets, ∓Inf for none (see bound)
	unbounded bool    // standard errors are those of targets without a limit on the bad side
}

// dimension returns an upper bound of the effective dimension at the noise of the surface.
// It is the dimension at a larger λ times the ratio of the two λ, or the number of rows if
// that is less.
func (s *Surface) dimension() float64 {
	if s.Draw.Coarse <= 1 {
		return s.Dimension
	}
	return min(s.Dimension*s.Draw.Coarse, float64(s.Draw.Rows))
}

// quantity is the quantity that a surface models. It is an objective, by its number, or one
// of those below, or a metric with a limit.
type quantity int

const (
	expense    quantity = -1 - iota // the logarithm of the cost
	success                         // whether a result has all that constraints need
	firstLimit                      // the first constraint, before the next one
)

// limitOf returns the quantity of the i-th constraint.
func limitOf(i int) quantity { return firstLimit - quantity(i) }

// limit returns the number of the constraint whose metric q is.
func (q quantity) limit() (i int, ok bool) { return int(firstLimit - q), q <= firstLimit }

// value returns a result's value of an objective, if need be from its last report, of a
// metric with a limit, or the logarithm of the cost. If there is none, ok is false.
func (q quantity) value(r *Result, s *Surface) (v float64, ok bool) {
	if q == expense {
		return math.Log(r.Cost), r.Cost > 0
	}
	if q <= firstLimit {
		m, ok := q.measure(r)
		return m.Value, ok
	}
	return s.Fidelity.value(r, int(q))
}

// measure returns a result's measurement of an objective or of a metric with a limit. If
// there is none, ok is false.
func (q quantity) measure(r *Result) (m Measure, ok bool) {
	if i, limit := q.limit(); limit {
		if r.Limited == nil || r.Limited[i].Count == 0 {
			return m, false
		}
		return r.Limited[i], true
	}
	if q < 0 || r.Y == nil {
		return m, false
	}
	return r.Y[q], true
}

// samples returns the samples of a result for the surface of a quantity. They are its
// outcome, if it has one, and its reports.
func (s *Surface) samples(r *Result, q quantity) []sample {
	switch {
	case q == success:
		return []sample{{x: r.X, y: label(r)}}
	case q <= firstLimit:
		m, ok := q.measure(r)
		if !ok {
			return nil
		}
		out := s.outcome(r.X, m)
		out.y = s.Target.exact(m.Value) // on the right side of the limit, however far
		return []sample{out}
	case q == expense:
		if v, ok := q.value(r, s); ok {
			return []sample{{x: r.X, y: s.Target.Of(v)}}
		}
		return nil
	case r.Y == nil:
		return s.lower(nil, r.X, r.Low, int(q), stopped)
	default:
		return s.lower([]sample{s.outcome(r.X, r.Y[q])}, r.X, r.Low, int(q), finished)
	}
}

// outcome returns the sample of a measured objective.
func (s *Surface) outcome(x []float64, m Measure) sample {
	out := sample{x: x, y: s.Target.Of(m.Value)}
	if !math.IsNaN(m.StdErr) {
		se := min(m.StdErr*s.slope(m.Value), 1e3)
		out.extra = se * se
	} else if m.Count > 1 {
		out.extra = s.Noise/float64(m.Count) - s.Noise
	}
	return out
}

// slope returns the derivative of targets, for standard errors.
func (s *Surface) slope(y float64) float64 {
	if s.unbounded {
		return s.Target.exactSlope(y)
	}
	return s.Target.slope(y)
}

// kernel returns the kernel of encoded configurations and fidelities.
func (s *Surface) kernel(sp *space.Space) (*kernel.Mixed, error) {
	ordered, nominal := layout(sp)
	k, err := kernel.NewMixed(ordered, nominal, s.Theta)
	if err != nil {
		return nil, err
	}
	if k = k.WithConstant(s.Constant); s.Fidelity == nil {
		return k, nil
	}
	return k.WithFidelity(s.Fidelity.Length)
}

// posterior returns the posterior of the quantity after the results, with room for a number
// of inducing points.
func (s *Surface) posterior(sp *space.Space, list []Result, q quantity, room int) (*posterior, error) {
	k, err := s.kernel(sp)
	if err != nil {
		return nil, fmt.Errorf("a model event: %w", err)
	}
	samples := make([]sample, 0, len(list))
	for i := range list {
		samples = append(samples, s.samples(&list[i], q)...)
	}
	return newPosterior(k, s.Noise, s.Mean, room, s.Capped, s.inputs(list, q), samples), nil
}
