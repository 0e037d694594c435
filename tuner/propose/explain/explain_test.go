package explain_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/explain"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// values makes a function of points from one of a point.
func values(f func(u []float64) float64) func([][]float64) ([]float64, error) {
	return func(rows [][]float64) ([]float64, error) {
		out := make([]float64, len(rows))
		for i, u := range rows {
			out[i] = f(u)
		}
		return out, nil
	}
}

// TestSobolIndices compares the estimates with indices that are known in closed form. The
// variance of a·u is a²/12.
func TestSobolIndices(t *testing.T) {
	const g = 1.0 / 12
	ishigami := func(u []float64) float64 {
		x := func(i int) float64 { return math.Pi * (2*u[i] - 1) }
		return math.Sin(x(0)) + 7*math.Pow(math.Sin(x(1)), 2) + 0.1*math.Pow(x(2), 4)*math.Sin(x(0))
	}
	for _, c := range []struct {
		name         string
		dim          int
		f            func(u []float64) float64
		first, total []float64
	}{
		{"additive", 4, func(u []float64) float64 { return 1000 + 3*u[0] + 2*u[1] + u[2] }, []float64{9. / 14, 4. / 14, 1. / 14, 0}, []float64{9. / 14, 4. / 14, 1. / 14, 0}},
		// Var(uv) = 7/144, Var E[uv | u] = 1/48.
		{"product", 2, func(u []float64) float64 { return u[0] * u[1] }, []float64{3. / 7, 3. / 7}, []float64{4. / 7, 4. / 7}},
		{"Ishigami", 3, ishigami, []float64{0.3139, 0.4424, 0}, []float64{0.5576, 0.4424, 0.2437}},
		{"constant", 2, func([]float64) float64 { return 7 }, []float64{0, 0}, []float64{0, 0}},
		{"step", 2, func(u []float64) float64 { return math.Floor(3*u[1]) + g }, []float64{0, 1}, []float64{0, 1}},
	} {
		shares, err := explain.Sobol(t.Context(), c.dim, 2048, 3, values(c.f))
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range shares {
			if math.Abs(s.First-c.first[i]) > 0.02 || math.Abs(s.Total-c.total[i]) > 0.02 {
				t.Errorf("%s: coordinate %d has %.4f and %.4f, want %.4f and %.4f", c.name, i, s.First, s.Total, c.first[i], c.total[i])
			}
			if math.Abs(s.First-c.first[i]) > 4*s.FirstError+1e-3 || math.Abs(s.Total-c.total[i]) > 4*s.TotalError+1e-3 {
				t.Errorf("%s: coordinate %d is off by %.4f and %.4f, with errors of %.4f and %.4f", c.name, i, s.First-c.first[i], s.Total-c.total[i], s.FirstError, s.TotalError)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := explain.Sobol(ctx, 2, 8, 1, values(ishigamiLike)); !errors.Is(err, context.Canceled) {
		t.Errorf("after its context ended: %v", err)
	}
	broken := errors.New("broken")
	if _, err := explain.Sobol(t.Context(), 2, 8, 1, func([][]float64) ([]float64, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("a function that fails: %v", err)
	}
}

func ishigamiLike(u []float64) float64 { return u[0] - u[1] }

// bruteShift computes the importances from the definition, sample by sample.
func bruteShift(sp *space.Space, samples []explain.Sample, minimize bool, part float64) []float64 {
	better := func(a, b int) bool { // a before b
		x, y := samples[a].Value, samples[b].Value
		if !minimize {
			x, y = -x, -y
		}
		return x < y || x == y && a < b
	}
	want := max(int(math.Round(part*float64(len(samples)))), 2)
	isBest := func(i int) bool {
		before := 0
		for k := range samples {
			if better(k, i) {
				before++
			}
		}
		return before < want
	}
	out, sum := make([]float64, sp.Dim()), 0.0
	for j, a := range sp.Axes() {
		n := 32
		if a.Levels > 0 && a.Levels < 32 {
			n = int(a.Levels)
		}
		density := func(only bool) ([]float64, bool) {
			var at []float64 // cells of the samples
			for i, s := range samples {
				if s.Active[j] && (!only || isBest(i)) {
					at = append(at, math.Min(math.Floor(s.X[j]*float64(n)), float64(n-1)))
				}
			}
			p := make([]float64, n)
			for c := range p {
				p[c] = 1 / float64(n) / float64(len(at)+1)
			}
			mean, square := 0.0, 0.0
			for _, c := range at {
				mean += c / float64(len(at))
			}
			for _, c := range at {
				square += (c - mean) * (c - mean) / float64(len(at))
			}
			width := math.Max(0.5, 1.06*math.Sqrt(square)/math.Pow(float64(len(at)), 0.2))
			for _, c := range at {
				if !a.Ordered || n < 32 {
					p[int(c)] += 1 / float64(len(at)+1)
					continue
				}
				norm := 0.0
				for k := range p {
					norm += math.Exp(-(float64(k) - c) * (float64(k) - c) / 2 / width / width)
				}
				for k := range p {
					p[k] += math.Exp(-(float64(k)-c)*(float64(k)-c)/2/width/width) / norm / float64(len(at)+1)
				}
			}
			return p, len(at) > 0
		}
		all, _ := density(false)
		top, some := density(true)
		active := 0.0
		for _, s := range samples {
			if s.Active[j] {
				active++
			}
		}
		for c := range all {
			if some {
				out[j] += (top[c] - all[c]) * (top[c] - all[c]) / all[c] * active / float64(len(samples))
			}
		}
		sum += out[j]
	}
	for j := range out {
		out[j] /= sum
	}
	return out
}

// TestShift compares importances by the data with a computation from the definition, and
// checks that the parameter that matters has the largest.
func TestShift(t *testing.T) {
	const seed = 23
	rng := rand.New(rand.NewPCG(seed, 1))
	sp, err := space.New(space.NewFloat("x", 0, 1), space.NewInt("n", 1, 4), space.NewFloat("idle", 0, 1),
		space.NewCategorical("kind", space.String("a"), space.String("b"), space.String("c")),
		space.NewFloat("only", 0, 1).Given("kind", space.String("b")))
	if err != nil {
		t.Fatal(err)
	}
	for _, direction := range []study.Direction{study.Minimize, study.Maximize} {
		for _, n := range []int{10, 57, 400} {
			var samples []explain.Sample
			for range n {
				u := make([]float64, sp.Dim())
				for i := range u {
					u[i] = rng.Float64()
				}
				s := explain.Sample{X: u, Active: make([]bool, sp.Dim())}
				if err := sp.Snap(u); err != nil {
					t.Fatal(err)
				}
				if err := sp.ActiveAt(u, s.Active); err != nil {
					t.Fatal(err)
				}
				s.Value = math.Round(10*(u[0]-0.2)*(u[0]-0.2)*20)/10 + 0.1*u[1] // with ties
				if direction == study.Maximize {
					s.Value = -s.Value
				}
				if rng.IntN(20) == 0 {
					s.Value = math.Inf(1 - 2*(int(direction)-1)) // on the bad side
				}
				samples = append(samples, s)
			}
			got, want := explain.Shift(sp, samples, direction, 0.1), bruteShift(sp, samples, direction == study.Minimize, 0.1)
			sum := 0.0
			for j := range got {
				sum += got[j]
				if math.Abs(got[j]-want[j]) > 1e-9 {
					t.Errorf("seed %d, %s, %d samples: coordinate %d has %v, want %v", seed, direction, n, j, got[j], want[j])
				}
				if n == 400 && j > 0 && got[j] > got[0]/2 {
					t.Errorf("seed %d, %s: coordinate %d has %v, and the one that matters has %v", seed, direction, j, got[j], got[0])
				}
			}
			if math.Abs(sum-1) > 1e-9 {
				t.Errorf("the shares add up to %v", sum)
			}
		}
	}
	for _, share := range explain.Shift(sp, nil, study.Minimize, 0.1) {
		if share != 0 {
			t.Error("without samples there is a share")
		}
	}
}
