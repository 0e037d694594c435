package falkon

import (
	"fmt"
	"math"
)

// note adds a note to the next iterate.
func (f *fit) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// takeNotes returns the notes since its last call.
func (f *fit) takeNotes() []string {
	if f.epsilon > f.told {
		f.note("epsilon was raised from %.3g to %.3g because K_MM of the centres is too ill-conditioned. A larger λ or fewer centres avoid this", f.told, f.epsilon)
		f.told = f.epsilon
	}
	notes := f.notes
	f.notes = nil
	return notes
}

// noteEnd notes that the last iteration, t, does not reach the tolerance.
func (f *fit) noteEnd(t int, it iteration) {
	residual := it.residual()
	switch {
	case residual <= f.Tolerance:
	case it.done():
		f.note("rounding ended the iteration at a relative residual of %.2g for λ = %.3g, above the tolerance of %.2g", residual, f.Lambda, f.Tolerance)
	case t == f.Iterations:
		f.note("not converged: after %d iterations the relative residual is %.2g for λ = %.3g, above the tolerance of %.2g. Allow more iterations, unless the validation error has settled", t, residual, f.Lambda, f.Tolerance)
	}
}

// noteEnd notes that the last Newton step, t, leaves a gradient above the tolerance, or
// does not reach λ.
func (w *newton) noteEnd(t int, decrement float64) {
	switch {
	case t < w.Iterations:
	case w.mu > w.lambda:
		w.note("not converged: after %d Newton steps μ is %.3g, above λ = %.3g. Allow more iterations, or a larger decay", t, w.mu, w.lambda)
	case decrement > w.tolerance*math.Sqrt(w.losses.unit()):
		w.note("not converged: after %d Newton steps the gradient has norm %.2g, above the tolerance of %.2g. Allow more iterations, unless the validation error has settled", t, decrement, w.tolerance*math.Sqrt(w.losses.unit()))
	}
}
