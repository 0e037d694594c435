package nystrom

import (
	"github.com/bkbtuner/bkb/learners"
)

// gradient descends with a constant step.
func (f *run) gradient(m *learners.Monitor) error {
	gamma := f.StepSize
	if gamma == 0 {
		s, _, err := f.curvature()
		if err != nil {
			return err
		}
		gamma = reciprocal(safety * s)
	}
	a, err := f.newSystem()
	if err != nil {
		return err
	}
	defer a.k.Close()
	w := make([]float64, len(a.rhs))
	residual := append([]float64(nil), a.rhs...)
	for t := 1; t <= f.Iterations; t++ {
		next := make([]float64, len(w))
		for i, r := range residual {
			next[i] = w[i] + gamma/float64(f.n)*r
		}
		aw, err := a.apply(f.ctx, next)
		if err != nil {
			return err
		}
		for i, v := range aw {
			aw[i] = a.rhs[i] - v
		}
		objective := a.objective(next, aw)
		if !(objective <= 4*a.size/float64(f.n)) { // it never grows, unless γ is too large
			return f.diverged(t)
		}
		w, residual = next, aw
		stop, err := m.Step(f.ctx, learners.Iterate{
			Iteration: t, Passes: float64(t + 1), Rows: int64(t+1) * int64(f.n), // one pass for b
			Objective: objective, Residual: a.relative(residual),
			Notes: f.takeNotes(), Model: f.model(&w),
		})
		if stop || err != nil {
			return err
		}
	}
	return nil
}

func (f *run) diverged(t int) error {
	return &learners.DivergenceError{Algorithm: algorithm, Iteration: t, Remedy: "a smaller step size"}
}
