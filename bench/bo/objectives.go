package bo

import (
	"fmt"
	"math"
	"slices"
)

// The functions of package problems are those that tests of the product need too.

// hartmann3 is −1 times the Hartmann function on [0, 1]³.
type hartmann3 struct{}

// Name implements Objective.
func (hartmann3) Name() string { return "hartmann3" }

// Bounds implements Objective.
func (hartmann3) Bounds() (lo, hi []float64) { return cube(3, 0, 1) }

var (
	hartmann3Alpha = [4]float64{1, 1.2, 3, 3.2}
	hartmann3A     = [4][3]float64{{3, 10, 30}, {0.1, 10, 35}, {3, 10, 30}, {0.1, 10, 35}}
	hartmann3P     = [4][3]float64{
		{0.3689, 0.1170, 0.2673},
		{0.4699, 0.4387, 0.7470},
		{0.1091, 0.8732, 0.5547},
		{0.0381, 0.5743, 0.8828},
	}
)

// Value implements Objective.
func (hartmann3) Value(x []float64) float64 {
	sum := 0.0
	for i, alpha := range hartmann3Alpha {
		e := 0.0
		for c, v := range x {
			d := v - hartmann3P[i][c]
			e += hartmann3A[i][c] * d * d
		}
		sum += alpha * math.Exp(-e)
	}
	return sum
}

// Optimum implements Objective.
func (hartmann3) Optimum() (x []float64, value float64, known bool) {
	return []float64{0.11458887665507, 0.55564889461693, 0.85254698468668}, 3.86277978733266, true
}

// levy is −1 times the levy function of Dim inputs on [−10, 10]^Dim.
type levy struct{ Dim int }

// Name implements Objective.
func (f levy) Name() string { return fmt.Sprintf("levy%d", f.Dim) }

// Bounds implements Objective.
func (f levy) Bounds() (lo, hi []float64) { return cube(f.Dim, -10, 10) }

// Value implements Objective.
func (f levy) Value(x []float64) float64 {
	w := func(i int) float64 { return 1 + (x[i]-1)/4 }
	sine := func(v float64) float64 { s := math.Sin(v); return s * s }
	last := w(len(x) - 1)
	sum := sine(math.Pi*w(0)) + (last-1)*(last-1)*(1+sine(2*math.Pi*last))
	for i := range len(x) - 1 {
		v := w(i)
		sum += (v - 1) * (v - 1) * (1 + 10*sine(math.Pi*v+1))
	}
	return -sum
}

// Optimum implements Objective.
func (f levy) Optimum() (x []float64, value float64, known bool) {
	return slices.Repeat([]float64{1}, f.Dim), 0, true
}

// rastrigin is −1 times the rastrigin function of Dim inputs on [−5.12, 5.12]^Dim,
// with the maximum moved to (Shift, …, Shift).
type rastrigin struct {
	Dim   int
	Shift float64
}

// Name implements Objective.
func (f rastrigin) Name() string { return fmt.Sprintf("rastrigin%d", f.Dim) }

// Bounds implements Objective.
func (f rastrigin) Bounds() (lo, hi []float64) { return cube(f.Dim, -5.12, 5.12) }

// Value implements Objective.
func (f rastrigin) Value(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		v -= f.Shift
		sum += v*v + 10*(1-math.Cos(2*math.Pi*v))
	}
	return -sum
}

// Optimum implements Objective.
func (f rastrigin) Optimum() (x []float64, value float64, known bool) {
	return slices.Repeat([]float64{f.Shift}, f.Dim), 0, true
}

func cube(d int, lo, hi float64) (l, h []float64) {
	return slices.Repeat([]float64{lo}, d), slices.Repeat([]float64{hi}, d)
}
