package sketch_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/sketch"
	"github.com/bkbtuner/bkb/sketch/sketchtest"
)

// leftNaively returns the diagonal of K − K_nM K_MM⁻¹ K_Mn by eliminating one point after the
// other in the whole matrix.
func leftNaively(k kernel.Kernel, x kernel.Rows, points []int) []float64 {
	n := x.Len()
	full := make([][]float64, n)
	for i := range full {
		full[i] = make([]float64, n)
		for j := range full[i] {
			full[i][j] = k.Eval(x, i, x, j)
		}
	}
	for _, p := range points {
		pivot := slices.Clone(full[p])
		for i := range full {
			f := full[i][p] / pivot[p]
			for j := range full {
				full[i][j] -= f * pivot[j]
			}
		}
	}
	out := make([]float64, n)
	for i := range out {
		out[i] = full[i][i]
	}
	return out
}

func TestRPCholeskyLeavesWhatItSays(t *testing.T) {
	const seed = 5
	rows := sketchtest.SUSY(300, seed)
	k := kerneltest.Gaussian(3)
	for _, m := range []int{1, 40, 100, 150} {
		d, err := sketch.RPCholesky{Points: m}.Sample(context.Background(), k, kernel.FromRows(rows), 1, rand.New(rand.NewPCG(seed, 2)))
		if err != nil || d.Len() != m {
			t.Fatalf("seed %d: %d points, %v", seed, d.Len(), err)
		}
		want, counted := 0.0, 0.0
		for _, v := range leftNaively(k, rows, d.Indices) {
			want += v / 300
		}
		for _, a := range d.Weights {
			counted += 1 / a
		}
		if math.Abs(d.Residual-want) > 1e-10 || math.Abs(counted-300) > 1e-9 {
			t.Errorf("seed %d, M = %d: %v left, want %v; the points stand for %v rows", seed, m, d.Residual, want, counted)
		}
	}
}

// The second point has the probability of what the first one leaves of the diagonal.
func TestRPCholeskyDrawsInProportion(t *testing.T) {
	const seed = 7
	draws := float64(racetest.Size(8000, 40000))
	x := kernel.NewPoints(5, 1, []float64{0, 0.5, 1, 2, 4})
	k := kerneltest.Gaussian(1)
	var pairs, want [5][5]float64
	for i := range 5 {
		rest := leftNaively(k, x, []int{i})
		sum := 0.0
		for _, v := range rest {
			sum += max(v, 0)
		}
		for j, v := range rest {
			want[min(i, j)][max(i, j)] += max(v, 0) / sum / 5
		}
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	for range int(draws) {
		d, err := sketch.RPCholesky{Points: 2}.Sample(context.Background(), k, kernel.FromRows(x), 1, rng)
		if err != nil {
			t.Fatal(err)
		}
		pairs[d.Indices[0]][d.Indices[1]] += 1.0 / draws
	}
	for i := range 5 {
		for j := i + 1; j < 5; j++ {
			p := want[i][j]
			if math.Abs(pairs[i][j]-p) > 5*math.Sqrt(p/draws) {
				t.Errorf("seed %d: rows %d and %d are drawn with %v, want %v", seed, i, j, pairs[i][j], p)
			}
		}
	}
}

// Copies of rows add nothing, so that there are as many points as different rows.
func TestRPCholeskyOfCopies(t *testing.T) {
	x := kernel.NewPoints[float64](60, 2, nil)
	for i := range 60 {
		x.Row(i)[0], x.Row(i)[1] = float64(i%6), 0
	}
	d, err := sketch.RPCholesky{Points: 30}.Sample(context.Background(), kerneltest.Gaussian(1), kernel.FromRows(x), 1, rand.New(rand.NewPCG(3, 1)))
	if err != nil || d.Len() != 6 {
		t.Fatalf("%d points, want 6 (%v)", d.Len(), err)
	}
	for _, a := range d.Weights {
		if a != 0.1 {
			t.Errorf("weights %v, want 1/10 each", d.Weights)
		}
	}
}
