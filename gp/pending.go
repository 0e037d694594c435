package gp

import (
	"fmt"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// ObserveVariance adds a pending pull at every row of x. Variances shrink as by
// observations, and means stay. An observation of an equal input resolves it, unless it
// has noise of its own, and so does [Exact.Cancel]. Evidence, leave-one-out and LogDet
// ignore pending pulls. It costs as much as [Exact.Append], and O(n²) more while there
// are any. Its errors are those of [Exact.Predict].
func (g *Exact) ObserveVariance(x kernel.Rows) error {
	if err := checkRows("x", g.k, x, g.obs.x); err != nil {
		return err
	}
	open := slices.Clone(g.open)
	for i := range x.Len() {
		open = append(open, x.Slice(i, i+1))
	}
	return g.reopen(open)
}

// Cancel takes back one pending pull at every row of x. It costs as much as
// ObserveVariance. It returns an error if one is not pending, or not as often.
func (g *Exact) Cancel(x kernel.Rows) error {
	if err := checkRows("x", g.k, x, g.obs.x); err != nil {
		return err
	}
	open := g.open
	for i := range x.Len() {
		var found bool
		if open, found = without(open, x, i); !found {
			return fmt.Errorf("gp: row %d of x: %w", i, ErrNotPending)
		}
	}
	return g.reopen(open)
}

// Pending returns the number of pending pulls.
func (g *Exact) Pending() int { return len(g.open) }

// AllPoints returns the inputs that were observed, followed by the pending ones, or nil.
func (g *Exact) AllPoints() kernel.Rows { return g.ahead().obs.x }

// InformationGain returns log det(I + Λ^−½KΛ^−½) with the pending pulls, the quantity
// of (7.5) in Carratino (2020). It is computed like [Sparse.InformationGain].
func (g *Exact) InformationGain() float64 { return g.ahead().LogDet() }

// PendingGain returns the part of InformationGain from pending pulls. These have shrunk
// no variance by more than its exponential.
func (g *Exact) PendingGain() float64 {
	if g.shadow == nil {
		return 0
	}
	return max(g.shadow.LogDet()-g.LogDet(), 0)
}

// EffectiveDimension returns Σ σ²(x_s)/ξ² of all pulls, pending ones included ((7.3) of
// Carratino (2020)). With A = K + Λ it is Σ_i (Λ_i − Λ_i²(A⁻¹)_ii)/ξ². It costs O(n³).
func (g *Exact) EffectiveDimension() float64 {
	a := g.ahead()
	n, sum := a.obs.len(), 0.0
	inv := a.chol.inverse(new(workspace))
	for i := range n {
		noise := a.obs.noise(i, a.opts.NoiseVariance)
		sum += noise - noise*noise*inv[i*n+i]
	}
	return sum / g.opts.NoiseVariance
}

// without returns the pulls without the oldest that is equal to row i of x.
func without(open []kernel.Rows, x kernel.Rows, i int) (rest []kernel.Rows, found bool) {
	key, known := kernel.RowKey(x, i)
	for j, r := range open {
		if k, _ := kernel.RowKey(r, 0); known && k == key {
			return slices.Delete(slices.Clone(open), j, j+1), true
		}
	}
	return open, false
}

// ahead returns the posterior that has the variances.
func (g *Exact) ahead() *Exact {
	if g.shadow != nil {
		return g.shadow
	}
	return g
}

// reopen sets the pending pulls.
func (g *Exact) reopen(open []kernel.Rows) error {
	shadow, err := g.withPending(open)
	if err == nil {
		g.open, g.shadow = open, shadow
	}
	return err
}

// withPending returns the posterior with invented targets for the pulls. Its points are
// those of g, then the new ones. nil means g itself.
func (g *Exact) withPending(open []kernel.Rows) (*Exact, error) {
	if len(open) == 0 {
		return nil, nil
	}
	s := *g
	s.open, s.shadow, s.chol = nil, nil, g.chol.clone()
	x := open[0].Slice(0, 0)
	x, err := x.Concat(open...)
	if err != nil {
		return nil, err
	}
	if err := s.Append(Data{X: x, Y: make([]float64, x.Len())}); err != nil {
		return nil, err
	}
	return &s, nil
}
