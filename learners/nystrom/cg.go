package nystrom

import (
	"slices"

	"github.com/bkbtuner/bkb/learners"
)

// cg is the method of conjugate gradients, for each output separately.
func (f *run) cg(m *learners.Monitor) error {
	a, err := f.newSystem()
	if err != nil {
		return err
	}
	defer a.k.Close()
	c := f.c
	w := make([]float64, len(a.rhs))
	residual, direction := slices.Clone(a.rhs), slices.Clone(a.rhs)
	rr := columnDots(residual, residual, c)
	first := slices.Clone(rr)
	done := make([]bool, c)
	for t := 1; t <= f.Iterations; t++ {
		ap, err := a.apply(f.ctx, direction)
		if err != nil {
			return err
		}
		pap := columnDots(direction, ap, c)
		next := slices.Clone(w)
		for o := range c {
			// A value that is not positive is rounding, or the output is solved.
			done[o] = done[o] || !(pap[o] > 0)
		}
		for i, p := range direction {
			if o := i % c; !done[o] {
				alpha := rr[o] / pap[o]
				next[i] += alpha * p
				residual[i] -= alpha * ap[i]
			}
		}
		now := columnDots(residual, residual, c)
		for o := range c {
			done[o] = done[o] || now[o] <= f.Tolerance*f.Tolerance*first[o]
		}
		for i := range direction {
			if o := i % c; done[o] {
				direction[i] = 0
			} else {
				direction[i] = residual[i] + now[o]/rr[o]*direction[i]
			}
		}
		rr, w = now, next
		stop, err := m.Step(f.ctx, learners.Iterate{
			Iteration: t, Passes: float64(t + 1), Rows: int64(t+1) * int64(f.n), // one pass for b
			Objective: a.objective(w, residual), Residual: a.relative(residual),
			Notes: f.takeNotes(), Model: f.model(&w),
		})
		if stop || err != nil || !slices.Contains(done, false) {
			return err
		}
	}
	return nil
}

// columnDots returns the inner products of the columns of two m×c matrices.
func columnDots(a, b []float64, c int) []float64 {
	out := make([]float64, c)
	for i, v := range a {
		out[i%c] += v * b[i]
	}
	return out
}
