package papers

import (
	"math"
	"slices"
	"testing"

	vector "gonum.org/v1/gonum/floats"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/avgsgd"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/minibatch"
)

func averagedOf(t *testing.T, alpha float64, sampling minibatch.Sampling, reps, passes int) *averagedCurve {
	t.Helper()
	c, err := averagedStudy{
		Alpha: alpha, Order: 1, Terms: 200, Sampling: sampling, Sizes: []int{64, 192}, Repetitions: reps, Passes: passes, Seed: 2,
	}.Run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// This is a scaled-down version of figures 2, 4 and 5. The best number of steps grows faster for harder
// problems, the three samplings agree, and the risk falls. Theory gives the slopes 1 and 1.5, and −½ for
// the risk.
func TestAveragedFigure2(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds; make test-bench runs it")
	}
	var first *averagedCurve
	for _, sampling := range []minibatch.Sampling{minibatch.Replacement, minibatch.Reshuffle, minibatch.Cycle} {
		easy, hard := averagedOf(t, 1.5, sampling, 16, 40), averagedOf(t, 3, sampling, 16, 400)
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
			// Bias and variance in §2.2 and Theorem 1: one pass over a hard problem leaves more risk.
			at := slices.IndexFunc(hard.Grid[1], func(t int) bool { return t >= 192 })
			if one := hard.Risks[1][at]; one < 2*hard.Risk[1] {
				t.Errorf("one pass has risk %g, the best %g", one, hard.Risk[1])
			}
		}
		if math.Abs(hard.Slope-first.Slope) > 0.3 {
			t.Errorf("%s: slope %.2f, with replacement %.2f", sampling, hard.Slope, first.Slope)
		}
	}
}

// The steps of the study are those of the learner, with rows in turn.
func TestAveragedStudyIsTheLearner(t *testing.T) {
	const n, passes = 20, 3
	b := averagedStudy{Alpha: 2, Order: 1, Terms: 15, Seed: 3}.basis(n, 0)
	got, err := b.average(t.Context(), minibatch.Plan{Sampling: minibatch.Cycle, BatchSize: 1}, passes, 1, func(int, func() []float64) {})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := data.NewMemory(kernel.NewPoints(n, b.m, b.z), b.y, 1)
	if err != nil {
		t.Fatal(err)
	}
	m, err := avgsgd.Params{Passes: passes, Sampling: minibatch.Cycle}.Fit(t.Context(), rows, learners.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := m.(*learners.Linear).Weights(); !vector.EqualApprox(got, want, 1e-12) {
		t.Errorf("%v, the learner has %v", got, want)
	}
}

// The excess risk in coefficients is ½∫(g − f)² on a grid that is exact for these frequencies, and the
// targets without noise are f.
func TestAveragedRisk(t *testing.T) {
	const terms, grid = 20, 256
	s := averagedStudy{Alpha: 1.7, Order: 1.2, Terms: terms, Seed: 6}
	b := s.basis(1, 0)
	theta := make([]float64, b.m)
	for k := range theta {
		theta[k] = math.Sin(float64(k + 1))
	}
	want := 0.0
	for i := range grid {
		d := 0.0
		for k := 1; k <= terms; k++ {
			sin, cos := math.Sincos(2 * math.Pi * float64(k*i) / grid)
			w := math.Sqrt2 * math.Pow(float64(k), -1.7/2)
			d += w*(theta[2*k-2]*cos+theta[2*k-1]*sin) - 2*cos*math.Pow(float64(k), -1.2)
		}
		want += d * d / grid / 2
	}
	if got := b.risk(theta); math.Abs(got-want) > 1e-10 {
		t.Errorf("risk %g, want %g", got, want)
	}
}

// The minimum of a parabola in log t is exact, and the edge is detected.
func TestMinimum(t *testing.T) {
	var grid []int
	var risk, falling []float64
	for g := 100.0; g < 1e5; g *= 1.1 {
		grid = append(grid, int(g))
		l := math.Log(float64(int(g)) / 3333)
		risk, falling = append(risk, math.Exp(0.7+0.3*l*l)), append(falling, 1/float64(len(grid)))
	}
	steps, least, inside := minimum(grid, risk)
	if math.Abs(steps-3333) > 1e-5 || math.Abs(least-math.Exp(0.7)) > 1e-9 || !inside {
		t.Errorf("t* %v with %v, inside %v", steps, least, inside)
	}
	if _, _, inside := minimum(grid, falling); inside {
		t.Error("not at the edge")
	}
}
