package sketch

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/blas/blas64"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// Models in files have a seed instead of frequencies, so these must never change.
func TestOrthogonalStaysTheSame(t *testing.T) {
	f := newMap(t, Orthogonal, kerneltest.Gaussian(1.5), 5, 16, 7)
	got := apply(t, f, kernel.NewPoints(1, 5, []float64{1, -2, 0.5, 3, 0.25}))
	want := []float64{
		0.11807542038851476, 0.3332539498641772, 0.18905561651791164, 0.298760730122003,
		0.08334588250024089, 0.3435890916054467, -0.10156231432331378, -0.338651880711288,
		-0.1367502507460173, -0.3260358399331296, 0.023577575076760483, -0.35276635037018444,
		0.29375793986065524, -0.19673909822102878, -0.33187648877050446, -0.12189338046572197,
	}
	for j, v := range want {
		if math.Abs(got[j]-v) > 1e-12 {
			t.Errorf("feature %d is %v, was %v", j, got[j], v)
		}
	}
}

// Above d = MaxOrthogonal blocks have that size. A frequency has the norm of d normal
// numbers, and fewer features are the first of more.
func TestThinOrthogonalFrequencies(t *testing.T) {
	racetest.Alone(t)
	const d, more = 600, 9
	rows := func(n int) [][]float64 {
		f := newMap(t, Orthogonal, kerneltest.Gaussian(1), d, 2*n, 3).(*dense)
		out := make([][]float64, n)
		for j := range out {
			for c := range d {
				out[j] = append(out[j], f.wt[c*f.rows+j])
			}
		}
		return out
	}
	w := rows(MaxOrthogonal + more)
	mean := 0.0
	for i := range w {
		mean += dot(w[i], w[i]) / float64(len(w))
		for j := range i {
			v := dot(w[i], w[j]) / math.Sqrt(dot(w[i], w[i])*dot(w[j], w[j]))
			if same := i/MaxOrthogonal == j/MaxOrthogonal; same != (math.Abs(v) < 1e-13) {
				t.Fatalf("cosine of frequencies %d and %d is %g", i, j, v)
			}
		}
	}
	if sd := math.Sqrt(2 * d / float64(len(w))); math.Abs(mean-d) > 5*sd {
		t.Errorf("mean of ‖w‖² is %g for %d coordinates, ± %g", mean, d, sd)
	}
	for i, v := range rows(more) {
		if !slices.Equal(v, w[i]) {
			t.Errorf("frequency %d depends on how many there are", i)
		}
	}
}

// Orthogonalised rows are uniform, with the moments of the orthogonal group.
func TestOrthogonaliseIsUniform(t *testing.T) {
	racetest.Alone(t)
	const d, repeats = 3, 4000
	rng := kerneltest.Seeded(t, 87)
	var mean, square, cross float64
	for range repeats {
		q := blas64.General{Cols: d, Stride: d, Data: make([]float64, d*d)}
		for i := range d {
			v := blas64.Vector{N: d, Inc: 1, Data: q.Data[i*d : (i+1)*d]}
			for c := range v.Data {
				v.Data[c] = rng.NormFloat64()
			}
			q.Rows = i
			orthogonalise(v, q, make([]float64, d))
		}
		mean += q.Data[8] / repeats
		square += q.Data[5] * q.Data[5] / repeats
		cross += q.Data[0] * q.Data[4] / repeats
	}
	for what, v := range map[string]float64{"E q": mean, "E q² − 1/d": square - 1.0/d, "E q₁₁q₂₂": cross} {
		if math.Abs(v) > 5/math.Sqrt(d*repeats) {
			t.Errorf("%s = %g", what, v)
		}
	}
}

func TestFeaturesContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := NewFeaturesContext(ctx, FeatureSpec{Family: Orthogonal, Kernel: kerneltest.Gaussian(1).Spec(), Dim: 700, Features: 1400})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
