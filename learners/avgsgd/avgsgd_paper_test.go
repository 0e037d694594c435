package avgsgd

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/minibatch"
)

func study(t *testing.T, alpha float64, s minibatch.Sampling, sizes []int, reps, passes int) *Curve {
	t.Helper()
	c, err := Study{
		Problem:  data.Spline{Alpha: alpha, R: 1 / (2 * alpha), Sigma: 1, Terms: 200, Seed: 1},
		Sampling: s, Sizes: sizes, Repetitions: reps, Passes: passes, Seed: 2,
	}.Run(background)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// This is a scaled-down version of figures 2, 4 and 5. The best number of steps grows
// faster for harder problems, the three samplings agree, and the risk falls. Theory
// gives the slopes 1 and 1.5, and −½ for the risk. tuner bench draws the figure itself.
func TestPaperFigure2(t *testing.T) {
	kerneltest.Claim(t)
	sizes := []int{64, 192}
	var first *Curve
	for _, sampling := range []minibatch.Sampling{minibatch.Replacement, minibatch.Reshuffle, minibatch.Cycle} {
		easy := study(t, 1.5, sampling, sizes, 16, 40)
		hard := study(t, 3, sampling, sizes, 16, 400)
		t.Logf("%s: α = 1.5: t* = %.0f, slope %.2f, risk %.2f; α = 3: t* = %.0f, slope %.2f, risk %.2f",
			sampling, easy.Steps, easy.Slope, easy.RiskSlope, hard.Steps, hard.Slope, hard.RiskSlope)
		if easy.AtEdge || hard.AtEdge {
			t.Errorf("%s: t* is where the passes end", sampling)
		}
		if hard.Slope-easy.Slope < 0.4 {
			t.Errorf("%s: slopes %.2f and %.2f", sampling, hard.Slope, easy.Slope)
		}
		if easy.RiskSlope > -0.3 || hard.RiskSlope > -0.3 {
			t.Errorf("%s: the risk falls as n^%.2f and n^%.2f", sampling, easy.RiskSlope, hard.RiskSlope)
		}
		if first == nil {
			first = hard
		}
		if math.Abs(hard.Slope-first.Slope) > 0.3 {
			t.Errorf("%s: slope %.2f, with replacement %.2f", sampling, hard.Slope, first.Slope)
		}
	}
}

// This checks bias and variance in §2.2 and Theorem 1. One pass over a hard problem
// leaves more risk than the best number of passes, at least twice as much at n = 192.
func TestPaperOnePassIsNotEnough(t *testing.T) {
	kerneltest.Claim(t)
	c := study(t, 3, minibatch.Replacement, []int{64, 192}, 8, 400)
	for i, n := range c.Sizes {
		at := 0
		for c.Grid[i][at] < n {
			at++
		}
		t.Logf("n = %d: risk %.4f after one pass, %.4f after %.0f", n, c.Risks[i][at], c.Risk[i], c.Steps[i]/float64(n))
		if n == 192 && c.Risks[i][at] < 2*c.Risk[i] {
			t.Errorf("n = %d: one pass has risk %g, the best %g", n, c.Risks[i][at], c.Risk[i])
		}
	}
}

// The step printed in §3 has θ_{t−1} in place of θ_{u−1}, where t is the total number
// of steps. It refers to an iterate of the future. It can also be read as the iterate
// of the previous pass, but that is not SGD. With γ as given it diverges where ours
// converges.
func TestPaperStepRefersToThePreviousIterate(t *testing.T) {
	kerneltest.Claim(t)
	const n = 40
	b := newBasis(data.Spline{Alpha: 2, R: 0.25, Sigma: 0.1, Terms: 50, Seed: 3}, n, 0)
	gram := b.gram()
	step := defaultStep(gram[0])
	d := newDual(n, 1, step)
	stale, frozen := make([]float64, n), make([]float64, n)
	f := make([]float64, 1)
	for u := range 60 * n {
		i := u % n
		if i == 0 {
			copy(frozen, stale)
		}
		multiply(f, gram[i*n:][:n], frozen, 1)
		stale[i] += step * (b.y[i] - f[0])
		d.visit(i, gram[i*n:][:n], b.y[i:i+1])
	}
	ours, printed := b.risk(d.a), b.risk(stale)
	t.Logf("risk %.4g, as printed %.4g", ours, printed)
	if !(ours < 0.5) || printed < 1e3*ours {
		t.Errorf("risk %g, as printed %g", ours, printed)
	}
}
