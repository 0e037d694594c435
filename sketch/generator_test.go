package sketch

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/blocked"
)

// The generator is compared with (5.3) as written, with a dense inverse.
func TestGeneratorAgainstItsDefinition(t *testing.T) {
	const n, m, lambda = 80, 12, 1e-2
	x := kerneltest.Points(kerneltest.Seeded(t, 50), n, 2)
	k := must(kernel.NewScaled(2.5, kerneltest.Gaussian(1)))
	points := x.Slice(0, m)
	weights := make([]float64, m)
	for j := range weights {
		weights[j] = 0.1 + 0.07*float64(j)
	}
	// (K_JJ + λnA)c_i = k_J(x_i) by Gauss–Jordan without pivots, because it is positive
	// definite.
	width := m + n
	a := make([]float64, m*width)
	for j := range m {
		for l := range m {
			a[j*width+l] = k.Eval(points, j, points, l)
		}
		a[j*width+j] += lambda * n * weights[j]
		for i := range n {
			a[j*width+m+i] = k.Eval(points, j, x, i)
		}
	}
	for p := range m {
		for j := range m {
			if j == p {
				continue
			}
			f := a[j*width+p] / a[p*width+p]
			for c := range width {
				a[j*width+c] -= f * a[p*width+c]
			}
		}
	}
	want := make([]float64, n)
	for i := range n {
		want[i] = k.Diag(x, i)
		for j := range m {
			want[i] -= k.Eval(points, j, x, i) * a[j*width+m+i] / a[j*width+j]
		}
		want[i] = min(want[i]/(lambda*n), 1)
	}
	g := must(NewGenerator(k, points, weights, lambda, n))
	requireClose(t, "scores", must(g.Scores(background, kernel.FromRows(x), 1)), want, 1e-12)
}

// No bit of a score depends on workers, on the kind of source, or on the other rows.
func TestScoresAreDeterministic(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 51), 700, 3)
	k := kerneltest.Gaussian(1)
	g := must(NewGenerator(k, x.Slice(0, 300), slices.Repeat([]float64{0.4}, 300), 1e-3, 700))
	want := must(g.Scores(background, kernel.FromRows(x), 1))
	for _, workers := range []int{0, 2, 7} {
		if !slices.Equal(must(g.Scores(background, kernel.FromRows(x), workers)), want) {
			t.Errorf("%d workers: other scores", workers)
		}
		if !slices.Equal(must(g.Scores(background, kerneltest.Sequential(x), workers)), want) {
			t.Errorf("%d workers: other scores of a sequential source", workers)
		}
	}
	for _, i := range []int{0, 255, 256, 699} {
		if got := must(g.Scores(background, kernel.FromRows(x.Slice(i, i+1)), 1)); got[0] != want[i] {
			t.Errorf("row %d alone has another score", i)
		}
	}
}

// Squared norms that are solved in columns have the bits of those that are solved in rows.
func TestColumnsHaveTheBitsOfProject(t *testing.T) {
	rng := kerneltest.Seeded(t, 81)
	x := kernel.NewPoints[float64](500, 5, nil)
	for i := range x.Data() {
		x.Data()[i] = rng.NormFloat64()
	}
	for name, k := range map[string]kernel.Kernel{"Gaussian": kerneltest.Gaussian(1.5), "Matérn-5/2": matern(2), "Laplace": must(kernel.NewLaplace(1)), "ARD": must(kernel.NewGaussian(1, 2, 3, 4, 5))} {
		for _, m := range []int{1, 6, 50, blocked.Direct, blocked.Direct + 1} {
			g := must(NewGenerator(k, x.Slice(0, m), slices.Repeat([]float64{0.5}, m), 1e-4, 500))
			from, w := 13, new(workspace)
			part := x.Slice(from, from+250)
			got, want := make([]float64, part.Len()), make([]float64, part.Len())
			done := g.columns().addSquares(w, got, part)
			if done != (m <= blocked.Direct) {
				t.Fatalf("%s, %d points: columns were used %v", name, m, done)
			}
			if !done {
				continue
			}
			addSquares(want, project(new(workspace), k, g.points, g.l, m, part))
			if !slices.Equal(got, want) {
				t.Errorf("%s, %d points: squared norms differ", name, m)
			}
		}
	}
}

// The scores of a dictionary's own points from the inverse equal those from the
// generator, also far above and below the scale of K.
func TestSelfScores(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 52), 60, 2)
	k := kerneltest.Gaussian(0.7)
	weights := make([]float64, 60)
	for j := range weights {
		weights[j] = 0.05 + 0.015*float64(j)
	}
	for _, lambda := range []float64{1e-6, 1e-3, 1, 1e2, 1e4, 1e8} {
		got := must(selfScores(must(kernel.Gramian(k, x)), weights, Ridge(lambda, 60)))
		g := must(NewGenerator(k, x, weights, lambda, 60))
		requireClose(t, "scores", got, must(g.Scores(background, kernel.FromRows(x), 1)), 1e-8)
	}
}

// Repeated rows make K singular, and a λ at the level of rounding makes K + λnI
// singular. The jitter that corrects it is reported.
func TestTinyLambda(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 53), 100, 2)
	for i := range 50 {
		copy(x.Row(i), x.Row(99-i))
	}
	k, src := kerneltest.Gaussian(3), kernel.FromRows(x)
	for _, lambda := range []float64{1e-14, 1e-18, 1e-30} {
		l := must(LeverageScores(background, k, src, lambda))
		for i, s := range l {
			if !(s > 0 && s <= 1) {
				t.Fatalf("λ = %g: score %d is %g", lambda, i, s)
			}
		}
	}
	g := must(NewGenerator(k, x, slices.Repeat([]float64{1}, 100), 1e-30, 100))
	if g.jitter <= 0 || g.jitter > 1e-8 {
		t.Errorf("jitter %g", g.jitter)
	}
	if g := must(NewGenerator(k, x, slices.Repeat([]float64{1}, 100), 1e-3, 100)); g.jitter != 0 {
		t.Errorf("jitter %g where none is needed", g.jitter)
	}
	// The same row twice gives each half the score of one row with twice the weight,
	// ℓ = k/(2k + λn).
	twice := kernel.NewPoints(2, 1, []float64{5, 5})
	requireClose(t, "twins", must(LeverageScores(background, k, kernel.FromRows(twice), 0.25)), []float64{0.4, 0.4}, 1e-14)
	one := kernel.NewPoints(1, 1, []float64{5})
	requireClose(t, "one row", must(LeverageScores(background, k, kernel.FromRows(one), 0.25)), []float64{0.8}, 1e-14)
}

func TestGeneratorFaults(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 54), 5, 2)
	k := kerneltest.Gaussian(1)
	var parameter *ParameterError
	for _, weights := range [][]float64{{1, 1, 1, 1, 0}, {1, 1, 1, -1, 1}, {math.NaN(), 1, 1, 1, 1}, {1, math.Inf(1), 1, 1, 1}} {
		if _, err := NewGenerator(k, x, weights, 1, 5); !errors.As(err, &parameter) || parameter.Parameter != "Weights" {
			t.Errorf("%v: %v", weights, err)
		}
	}
	var shape *kernel.ShapeError
	if _, err := NewGenerator(k, x, []float64{1}, 1, 5); !errors.As(err, &shape) {
		t.Error(err)
	}
	if _, err := NewGenerator(k, nil, []float64{1}, 1, 5); !errors.As(err, &shape) {
		t.Error(err)
	}
	if _, err := NewGenerator(k, nil, nil, 1, 0); !errors.As(err, &parameter) {
		t.Error(err)
	}
	indefinite := &kernel.Pairwise[[]float64]{Name: "indefinite", Func: func(x, y []float64) float64 {
		if x[0] == y[0] {
			return 0.1
		}
		return 1
	}}
	var factor *FactorizationError
	if _, err := NewGenerator(indefinite, x, slices.Repeat([]float64{1}, 5), 1e-6, 5); !errors.As(err, &factor) {
		t.Error(err)
	}
	failing := &kernel.Pairwise[[]float64]{Name: "nan", Func: func(x, y []float64) float64 { return x[0] * y[0] * math.Inf(1) }}
	var nan *kernel.NonFiniteError
	g := must(NewGenerator(failing, nil, nil, 1, 5))
	if _, err := g.Scores(background, kernel.FromRows(x), 2); !errors.As(err, &nan) {
		t.Error(err)
	}
}

// A panic of a caller's kernel reaches the caller, not the runtime.
func TestKernelPanics(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 55), 600, 2)
	broken := &kernel.Pairwise[[]float64]{Name: "broken", Func: func(_, _ []float64) float64 { panic("broken kernel") }}
	defer func() {
		if r := recover(); r != "broken kernel" {
			t.Errorf("recovered %v", r)
		}
	}()
	_, _ = must(NewGenerator(broken, nil, nil, 1, 5)).Scores(background, kernel.FromRows(x), 2)
}

// Every reader detects a source that breaks its contract.
func TestSourceFaults(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 56), 600, 2)
	g := must(NewGenerator(kerneltest.Gaussian(1), nil, nil, 1, 600))
	cause := errors.New("disk on fire")
	for what, c := range map[string]struct {
		src  *kerneltest.Source
		want error
	}{
		"breaks off": {&kerneltest.Source{Err: cause, ErrAt: 300}, cause},
		"too short":  {&kerneltest.Source{Announce: 1}, kernel.ErrSource},
		"too long":   {&kerneltest.Source{Announce: -1}, kernel.ErrSource},
		"short":      {&kerneltest.Source{Short: true}, kernel.ErrSource},
	} {
		src := kerneltest.Sequential(x)
		src.Err, src.ErrAt, src.Announce, src.Short = c.src.Err, c.src.ErrAt, c.src.Announce, c.src.Short
		var at *kernel.SourceError
		if _, err := g.Scores(background, src, 2); !errors.Is(err, c.want) || !errors.As(err, &at) {
			t.Errorf("%s: %v", what, err)
		}
		if _, err := (SQUEAK{Block: 100}).Sample(background, kerneltest.Gaussian(1), src, 1e-2, kerneltest.Seeded(t, 57)); !errors.Is(err, c.want) {
			t.Errorf("%s: SQUEAK: %v", what, err)
		}
	}
}

// A dictionary of all rows is a copy of them, as that of fewer rows is.
func TestDictionaryIsACopy(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 91), 8, 2)
	d := must(BLESS{Oversampling: 50}.Sample(background, kerneltest.Gaussian(0.1), kernel.FromRows(x), 1e-6, rand.New(rand.NewPCG(1, 1))))
	if d.Len() != x.Len() {
		t.Fatalf("%d of %d rows were chosen", d.Len(), x.Len())
	}
	points := d.Points.(*kernel.Points[float64])
	before := slices.Clone(points.Data())
	for i := range x.Data() {
		x.Data()[i] = 42
	}
	if !slices.Equal(points.Data(), before) {
		t.Error("the dictionary changed with the rows that it was drawn from")
	}
}
