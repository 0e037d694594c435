package model

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Surface is the model of one quantity, as a model event has it.
type Surface struct {
	Target     Target    `json:"target"`
	Theta      []float64 `json:"theta"` // of the kernel
	Noise      float64   `json:"noise"`
	Mean       float64   `json:"mean"`
	Dictionary []int     `json:"dictionary"` // inducing points, by trial
	// Rows are which of a trial's samples they are, if they are not all the first, and
	// Epochs of which of its late results, 0 for its outcome, if they are not all of that.
	Rows      []int     `json:"rows,omitempty"`
	Epochs    []int     `json:"epochs,omitempty"`
	Fidelity  *fidelity `json:"fidelity,omitempty"`
	Capped    bool      `json:"capped,omitempty"`
	Dimension float64   `json:"dimension"` // effective
	Gain      float64   `json:"gain"`      // log det V
}

// quantity is what a surface is a model of: an objective, by its number, or one of
// those below.
type quantity int

const (
	feasibility quantity = -1 - iota
	expense              // the logarithm of the cost
)

// value is what a result says of an objective, if need be by its last report,
// or the logarithm of the cost; ok is false if nothing.
func (q quantity) value(r *Result, s *Surface) (v float64, ok bool) {
	if q == expense {
		return math.Log(r.Cost), r.Cost > 0
	}
	return s.Fidelity.value(r, int(q))
}

// samples is what a result tells the surface of a quantity: its outcome, if it
// has one, and what it reported.
func (s *Surface) samples(r *Result, q quantity) []sample {
	switch {
	case q == feasibility && r.Feasible:
		return []sample{{x: r.X, y: 1}}
	case q == feasibility:
		return []sample{{x: r.X, y: -1}}
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

// outcome is what a measured objective tells.
func (s *Surface) outcome(x []float64, m Measure) sample {
	out := sample{x: x, y: s.Target.Of(m.Value)}
	if !math.IsNaN(m.StdErr) {
		se := min(m.StdErr*s.Target.slope(m.Value), 1e3)
		out.extra = se * se
	} else if m.Count > 1 {
		out.extra = s.Noise/float64(m.Count) - s.Noise
	}
	return out
}

// covariance is the kernel.
func (s *Surface) covariance(sp *space.Space) (*covariance, error) {
	ordered, nominal := layout(sp)
	k, err := newCovariance(ordered, nominal, s.Theta)
	if err != nil || s.Fidelity == nil {
		return k, err
	}
	return k.withFidelity(s.Fidelity.Length)
}

// posterior is that of the quantity after the results, with at most limit inducing
// points.
func (s *Surface) posterior(sp *space.Space, list []Result, q quantity, limit int) (*posterior, error) {
	k, err := s.covariance(sp)
	if err != nil {
		return nil, fmt.Errorf("a model event: %w", err)
	}
	samples := make([]sample, 0, len(list))
	for i := range list {
		samples = append(samples, s.samples(&list[i], q)...)
	}
	return rebuilt(k, s.Noise, s.Mean, limit, s.Capped, s.inputs(list, q), samples), nil
}
