package avgsgd

import (
	"testing"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

// The step printed in §3 has θ_{t−1} in place of θ_{u−1}, where t is the total number
// of steps. It refers to an iterate of the future. It can also be read as the iterate
// of the previous pass, but that is not SGD. With γ as given it diverges where ours
// converges.
func TestPaperStepRefersToThePreviousIterate(t *testing.T) {
	kerneltest.Claim(t)
	const n, m = 40, 5
	rng := kerneltest.Seeded(t, 3)
	x, y := kerneltest.Normals(rng, n*m), kerneltest.Normals(rng, n)
	for i := range n {
		x[i*m] += 4 // most of ‖x‖² is in one direction
	}
	gram := make([]float64, n*n)
	mat.NewDense(n, n, gram).Mul(mat.NewDense(n, m, x), mat.NewDense(n, m, x).T())
	largest := 0.0
	for i := range n {
		largest = max(largest, gram[i*n+i])
	}
	step := defaultStep(largest)
	d := newDual(n, 1, step)
	stale, frozen := make([]float64, n), make([]float64, n)
	f := make([]float64, 1)
	for u := range 60 * n {
		i := u % n
		if i == 0 {
			copy(frozen, stale)
		}
		multiply(f, gram[i*n:][:n], frozen, 1)
		stale[i] += step * (y[i] - f[0])
		d.visit(i, gram[i*n:][:n], y[i:i+1])
	}
	loss := func(a []float64) (sum float64) {
		for i := range n {
			multiply(f, gram[i*n:][:n], a, 1)
			sum += (f[0] - y[i]) * (f[0] - y[i]) / n
		}
		return sum
	}
	ours, printed := loss(d.a), loss(stale)
	t.Logf("loss %.4g, as printed %.4g", ours, printed)
	if !(ours < 2) || printed < 1e3*ours {
		t.Errorf("loss %g, as printed %g", ours, printed)
	}
}
