package papers

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/internal/datatest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Twelve trials reach about the error of a hundred and twenty random ones, and less than
// theory's settings.
func TestTunedFALKON(t *testing.T) {
	env := experiment.Env{Seed: 1, Data: datatest.Folder(t), Only: []string{"kin40k"}, Workers: 1}
	r := quick(t, "auto", env)
	all := table(t, r, "auto")
	if ratio := all.Float("ratio")[0]; !(ratio < 1.1) {
		t.Errorf("the ratio to random search is %.3f", ratio)
	}
	if v, theory := all.Float("validation")[0], all.Float("theory")[0]; !(v < theory) {
		t.Errorf("tuned %.4f, theory's settings %.4f", v, theory)
	}
}

// The stored tables have 600 configurations of the present space.
func TestRandomTables(t *testing.T) {
	racetest.Alone(t)
	for _, name := range autoProblems {
		p, err := newAutoProblem(t.Context(), &experiment.Env{Data: datatest.Folder(t)}, name, 8000)
		if err != nil {
			t.Fatal(err)
		}
		s, err := readRandom(p.tuning.Space(), name)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.errs) != 600 || s.best.Len() != 4+len(autoFixed) {
			t.Errorf("%s: %d errors, the best of %v", name, len(s.errs), s.best)
		}
	}
}

// The expected least of k errors is the mean over all choices of k.
func TestExpectedLeast(t *testing.T) {
	const seed = 3
	rng := stream.New(seed)
	for n := 1; n <= 9; n++ {
		s := &randomSearch{errs: make([]float64, n)}
		for i := range s.errs {
			s.errs[i] = math.Round(4*rng.NormFloat64()) / 4 // with ties
		}
		sums, counts := make([]float64, n+1), make([]float64, n+1)
		for subset := 1; subset < 1<<n; subset++ {
			least, k := math.Inf(1), 0
			for i, e := range s.errs {
				if subset>>i&1 == 1 {
					least, k = min(least, e), k+1
				}
			}
			sums[k] += least
			counts[k]++
		}
		for k := 1; k <= n; k++ {
			if got, want := s.expected(k), sums[k]/counts[k]; math.Abs(got-want) > 1e-12 {
				t.Errorf("seed %d: the least of %d of %v: %v, want %v", seed, k, s.errs, got, want)
			}
		}
	}
}
