package learners_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
	"github.com/bkbtuner/bkb/sketch/sketchtest"
)

func TestChooseCenters(t *testing.T) {
	racetest.Alone(t)
	ctx := context.Background()
	rows := sketchtest.SUSY(600, 8)
	src, k := kernel.FromRows(rows), kerneltest.Gaussian(4)
	for name, c := range map[string]struct {
		sampler   sketch.Sampler
		lambda    float64
		most      int
		low, high int
	}{
		"uniform":             {nil, 0, 50, 50, 50},
		"uniform, all rows":   {nil, 0, 1000, 600, 600},
		"uniform, thinned":    {sketch.Uniform{Points: 80}, 1e-2, 30, 30, 30},
		"BLESS":               {sketch.BLESS{}, 1e-2, 0, 20, 400},
		"BLESS, limited":      {sketch.BLESS{MaxPoints: 100}, 1e-9, 100, 95, 100},
		"BLESS-R, limited":    {sketch.BLESSR{MaxPoints: 100}, 1e-9, 100, 95, 100},
		"RPCholesky":          {sketch.RPCholesky{}, 1e-9, 100, 100, 100},
		"automatic":           {learners.Automatic{}, 1e-9, 100, 100, 100},
		"BLESS, tiny":         {sketch.BLESS{}, 1e-2, 1, 1, 1},
		"exact RLS, thinned":  {sketch.ExactRLS{}, 1e-2, 40, 40, 40},
		"recursive, no limit": {sketch.RecursiveRLS{}, 1e-2, 0, 20, 600},
	} {
		got, err := learners.ChooseCenters(ctx, k, src, learners.Sampling{Sampler: c.sampler, Lambda: c.lambda, Most: c.most}, 3)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		m := got.Len()
		if m < c.low || m > c.high || got.Points.Len() != m || len(got.Weights) != m {
			t.Errorf("%s: %d indices, %d points, %d weights, want %d to %d", name, m, got.Points.Len(), len(got.Weights), c.low, c.high)
		}
		if !slices.IsSorted(got.Indices) || len(slices.Compact(slices.Clone(got.Indices))) != m {
			t.Errorf("%s: indices %v do not increase strictly", name, got.Indices)
		}
		for i, row := range got.Points.(*kernel.Points[float64]).Data() {
			if row != rows.Data()[got.Indices[i/18]*18+i%18] {
				t.Fatalf("%s: point %d is not row %d", name, i/18, got.Indices[i/18])
			}
		}
		sum := 0.0
		for _, w := range got.Weights {
			if !(w > 0) {
				t.Fatalf("%s: weight %v", name, w)
			}
			sum += w
		}
		// Σ w estimates n. One point of one level is too few for an estimate.
		if m > 20 && (sum < 300 || sum > 1200) {
			t.Errorf("%s: weights sum to %v, want about n = 600", name, sum)
		}
		again, err := learners.ChooseCenters(ctx, k, src, learners.Sampling{Sampler: c.sampler, Lambda: c.lambda, Most: c.most}, 3)
		if err != nil || !slices.Equal(again.Indices, got.Indices) {
			t.Errorf("%s: chosen again they are others (%v)", name, err)
		}
	}
}

// TestThinnedWeights checks that thinning keeps the mean of Σ w_j k_j k_jᵀ, here of Σ
// w_j.
func TestThinnedWeights(t *testing.T) {
	rows := sketchtest.SUSY(300, 9)
	src, k := kernel.FromRows(rows), kerneltest.Gaussian(4)
	mean := 0.0
	const rounds = 200
	for seed := range uint64(rounds) {
		c, err := learners.ChooseCenters(context.Background(), k, src, learners.Sampling{Sampler: sketch.Uniform{Points: 90}, Lambda: 1, Most: 25}, seed)
		if err != nil {
			t.Fatal(err)
		}
		for j, w := range c.Weights {
			if c.Indices[j] < 100 {
				mean += w / rounds
			}
		}
	}
	// Rows 0 to 99 weigh 100 in the mean, with a standard error of about
	// 300·√(2/9/25/200) = 2.
	if mean < 90 || mean > 110 {
		t.Errorf("the weights of 100 of 300 rows sum to %v in the mean", mean)
	}
}

func TestChooseCentersErrors(t *testing.T) {
	ctx := context.Background()
	rows := sketchtest.SUSY(30, 10)
	k := kerneltest.Gaussian(4)
	var empty *sketch.EmptyError
	if _, err := learners.ChooseCenters(ctx, k, kernel.FromRows(rows.Slice(0, 0)), learners.Sampling{Most: 3}, 1); !errors.As(err, &empty) {
		t.Errorf("no row: %v", err)
	}
	var parameter *sketch.ParameterError
	if _, err := learners.ChooseCenters(ctx, k, kernel.FromRows(rows), learners.Sampling{Sampler: sketch.BLESS{}, Lambda: -1, Most: 3}, 1); !errors.As(err, &parameter) {
		t.Errorf("λ = −1: %v", err)
	}
}

// TestSamplingFor checks the defaults of each kind of sampler for each thing that is
// given.
func TestSamplingFor(t *testing.T) {
	const lambda, kappaSq, usual, n = 1e-4, 2.0, 300, 900
	bless, squeak, auto, pivots := sketch.BLESS{}, sketch.SQUEAK{}, learners.Automatic{}, sketch.RPCholesky{}
	bounded := sketch.BLESS{MaxPoints: usual, MaxCandidates: 10 * usual}
	for name, c := range map[string]struct {
		given  learners.Sampling
		lambda float64
		want   learners.Sampling
	}{
		"uniform":                   {learners.Sampling{}, lambda, learners.Sampling{Lambda: 1e-2, Most: usual}},
		"uniform, M":                {learners.Sampling{Most: 1000}, lambda, learners.Sampling{Lambda: 1e-2, Most: n}},
		"automatic":                 {learners.Sampling{Sampler: auto}, lambda, learners.Sampling{Sampler: auto, Lambda: 1e-2, Most: usual}},
		"automatic, all rows":       {learners.Sampling{Sampler: auto, Most: n}, lambda, learners.Sampling{Lambda: 1e-2, Most: n}},
		"RPCholesky, M":             {learners.Sampling{Sampler: pivots, Most: 50}, lambda, learners.Sampling{Sampler: pivots, Lambda: 1e-2, Most: 50}},
		"BLESS":                     {learners.Sampling{Sampler: bless}, lambda, learners.Sampling{Sampler: bounded, Lambda: 1e-2}},
		"BLESS, M":                  {learners.Sampling{Sampler: bless, Most: 50}, lambda, learners.Sampling{Sampler: bounded, Lambda: 2e-10, Most: 50}},
		"BLESS, λ":                  {learners.Sampling{Sampler: bless, Lambda: 1e-3}, lambda, learners.Sampling{Sampler: bounded, Lambda: 1e-3}},
		"BLESS, both":               {learners.Sampling{Sampler: bless, Lambda: 1e-3, Most: 50}, lambda, learners.Sampling{Sampler: bounded, Lambda: 1e-3, Most: 50}},
		"SQUEAK":                    {learners.Sampling{Sampler: squeak}, lambda, learners.Sampling{Sampler: squeak, Lambda: 1e-2}},
		"SQUEAK, λ above κ²/100":    {learners.Sampling{Sampler: squeak}, 0.5, learners.Sampling{Sampler: squeak, Lambda: kappaSq}},
		"SQUEAK, M and no ridge":    {learners.Sampling{Sampler: squeak, Most: 50}, 0, learners.Sampling{Sampler: squeak, Lambda: kappaSq / 30, Most: 50}},
		"SQUEAK, M and its own λ":   {learners.Sampling{Sampler: squeak, Lambda: 3, Most: 50}, lambda, learners.Sampling{Sampler: squeak, Lambda: 3, Most: 50}},
		"uniform, no ridge, more M": {learners.Sampling{Most: 10}, 0, learners.Sampling{Lambda: kappaSq / 30, Most: 10}},
	} {
		got := c.given.For(c.lambda, kappaSq, usual, n)
		if got.Sampler != c.want.Sampler || got.Most != c.want.Most || math.Abs(got.Lambda-c.want.Lambda) > 1e-12*c.want.Lambda {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// Centres for a smaller M are among those for a larger one, whatever chooses them, so that
// trials with different M can be compared.
func TestCentersAreNested(t *testing.T) {
	racetest.Alone(t)
	const n = 400
	base := rand.Uint64()
	t.Logf("seed %d", base)
	for name, sampler := range map[string]sketch.Sampler{
		"uniform": nil, "automatic": learners.Automatic{}, "RPCholesky": sketch.RPCholesky{}, "BLESS": sketch.BLESS{}, "BLESS-R": sketch.BLESSR{},
		"SQUEAK": sketch.SQUEAK{}, "recursive": sketch.RecursiveRLS{}, "two-pass": sketch.TwoPass{}, "exact": sketch.ExactRLS{},
	} {
		for round := range uint64(4) {
			rng := rand.New(rand.NewPCG(base, round))
			src := rareOrRough(n, round%3 == 0, rng)
			var weights []float64
			if round%2 == 1 {
				for range n {
					weights = append(weights, 0.5+rng.Float64())
				}
				for i := range weights {
					weights[i] /= sumOf(weights) / n
				}
			}
			var small []int
			for _, m := range []int{10, 11, 150, 151, 300} {
				s := learners.Sampling{Sampler: sampler, Most: m, Weights: weights}.For(1e-5, 1, 200, n)
				c, err := learners.ChooseCenters(context.Background(), kerneltest.Gaussian(1), src, s, round)
				if err != nil {
					t.Fatal(err)
				}
				for _, i := range small {
					if _, found := slices.BinarySearch(c.Indices, i); !found {
						t.Fatalf("%s, round %d: the centres for M = %d lack row %d, which is one for less", name, round, m, i)
					}
				}
				if small = c.Indices; len(small) > m {
					t.Errorf("%s, round %d: %d centres for M = %d", name, round, len(small), m)
				}
			}
		}
	}
}

func sumOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// Automatic takes pivots where groups of rows are rare, and neither for rows that are far from
// all others nor for a rough function.
func TestAutomaticFindsRareGroups(t *testing.T) {
	for seed := range uint64(3) {
		for _, rare := range []bool{true, false} { // with two or three rows for each group
			src := rareOrRough(1250, rare, rand.New(rand.NewPCG(seed, 41)))
			c, err := learners.ChooseCenters(context.Background(), kerneltest.Gaussian(1), src, learners.Sampling{Sampler: learners.Automatic{}, Most: 150}, seed)
			if err != nil {
				t.Fatal(err)
			}
			if got := len(c.Notes) == 2; got != rare || c.Len() != 150 {
				t.Errorf("seed %d: rare groups %v, %d centres: %q", seed, rare, c.Len(), c.Notes)
			}
		}
	}
}

// rareOrRough returns n rows in the plane. A twentieth is far away, in 20 groups with a
// level each if rare is set. Otherwise each is a single row, and the others have a function
// that is rough.
func rareOrRough(n int, rare bool, rng *rand.Rand) *data.Memory {
	const groups = 20
	x, y := kernel.NewPoints[float64](n, 2, nil), make([]float64, n)
	for i := range n {
		row := x.Row(i)
		row[0], row[1] = rng.NormFloat64(), rng.NormFloat64()
		g := rng.IntN(groups)
		switch far := rng.IntN(20) == 0; {
		case far && rare:
			row[0], row[1] = 100+20*float64(g)+0.2*row[0], 0.2*row[1]
			y[i] = float64(g%5) - 2
		case far:
			row[0], row[1] = 1000*rng.Float64()+10, 1000*rng.Float64()+10
		case rare:
			y[i] = math.Sin(row[0]) * math.Cos(row[1])
		default:
			y[i] = math.Sin(12*row[0]) * math.Cos(12*row[1])
		}
	}
	m, err := data.NewMemory(x, y, 1)
	if err != nil {
		panic(err)
	}
	return m
}
