package avgsgd

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/learners/theory"
)

// Study is the experiment of figures 2, 4 and 5 of the paper. It finds the number of
// steps t*(n) after which averaged SGD has its least excess risk, as n grows.
//
// It computes in the basis e_k of cosines and sines, for k up to Problem.Terms. K = ZZᵀ
// with Z_ik = |k|^{−α/2}e_k(x_i), and the excess risk is half the squared distance of
// the coefficients. It needs no test data and no series.
type Study struct {
	// Problem is the spline problem. Figure 2 has R = 1/(2·Alpha). Terms 0 means 1000.
	Problem  data.Spline
	Sampling minibatch.Sampling // empty for minibatch.Replacement
	Sizes    []int              // n, increasing, at least two
	// Repetitions is the number of repetitions to average, each with other data. If 0,
	// it is 16. The paper has 100.
	Repetitions int
	// Passes is the largest number of passes. A larger t* is not found. If 0, it is
	// 400.
	Passes int
	Seed   uint64
}

// Curve is the result of a Study.
type Curve struct {
	Sizes []int
	Steps []float64 // t*(n)
	Risk  []float64 // the mean excess risk there
	// Slope is the slope of log t* against log n, and RiskSlope that of log Risk.
	Slope, RiskSlope float64
	// AtEdge says that some t* is at the end of the passes, so that more passes are
	// needed.
	AtEdge bool
	// Grid has the steps at which the risk was measured, for every n, and Risks the
	// mean risks.
	Grid  [][]int
	Risks [][]float64
}

// gridRatio is the ratio of successive numbers of steps at which the risk is measured.
const gridRatio = 1.12

// Run makes the experiment. It takes Repetitions·Passes·n² operations for every n, and
// 8n(n + 2·Terms) bytes for K and Z.
func (s Study) Run(ctx context.Context) (*Curve, error) {
	s, err := s.checked()
	if err != nil {
		return nil, err
	}
	c := &Curve{Sizes: s.Sizes}
	for _, n := range s.Sizes {
		grid := s.grid(n)
		mean := make([]float64, len(grid))
		for rep := range s.Repetitions {
			risks, err := s.once(ctx, n, rep, grid)
			if err != nil {
				return nil, err
			}
			for j, v := range risks {
				mean[j] += v / float64(s.Repetitions)
			}
		}
		steps, risk, inside := minimum(grid, mean)
		c.Steps, c.Risk = append(c.Steps, steps), append(c.Risk, risk)
		c.Grid, c.Risks = append(c.Grid, grid), append(c.Risks, mean)
		c.AtEdge = c.AtEdge || !inside
	}
	c.Slope, c.RiskSlope = theory.Slope(s.Sizes, c.Steps), theory.Slope(s.Sizes, c.Risk)
	return c, nil
}

func (s Study) checked() (Study, error) {
	if err := s.Problem.Check(); err != nil {
		return s, err
	}
	s.Problem.Terms = cmp.Or(s.Problem.Terms, 1000)
	s.Repetitions, s.Passes = cmp.Or(s.Repetitions, 16), cmp.Or(s.Passes, 400)
	s.Sampling = cmp.Or(s.Sampling, minibatch.Replacement)
	n := len(s.Sizes)
	increasing := n >= 2 && s.Sizes[0] >= 2 && slices.IsSorted(s.Sizes) && s.Sizes[0] < s.Sizes[n-1]
	return s, cmp.Or(
		learners.Require(increasing, algorithm, "sizes", s.Sizes, "two different numbers of rows at least, from 2 on, increasing"),
		learners.Require(s.Repetitions >= 1, algorithm, "repetitions", s.Repetitions, "at least 1"),
		learners.Require(s.Passes >= 1, algorithm, "passes", s.Passes, "at least 1"),
		s.Sampling.Check(algorithm),
	)
}

// grid returns the numbers of steps from n/8 to Passes·n.
func (s Study) grid(n int) []int {
	var out []int
	for t := max(1, float64(n)/8); t < float64(s.Passes*n); t *= gridRatio {
		if i := int(t); len(out) == 0 || i > out[len(out)-1] {
			out = append(out, i)
		}
	}
	return append(out, s.Passes*n)
}

// once returns the excess risks of θ̄_t for t on the grid, on one data set.
func (s Study) once(ctx context.Context, n, rep int, grid []int) ([]float64, error) {
	b := newBasis(s.Problem, n, uint64(rep)*uint64(s.Sizes[len(s.Sizes)-1]))
	gram := b.gram()
	d := newDual(n, 1, defaultStep(slices.Max(diagonal(gram, n))))
	rng := stream.New(stream.Derive(s.Seed, "avgsgd/study", uint64(rep)))
	plan := minibatch.Plan{Sampling: s.Sampling, BatchSize: 1}
	kept := make([]float64, n)
	var risks []float64
	for range s.Passes {
		err := plan.Deal(ctx, n, rng, func(idx []int) error {
			i := idx[0]
			d.visit(i, gram[i*n:][:n], b.y[i:i+1])
			if d.t == grid[len(risks)] {
				average(kept, d.a, d.u, d.t, false)
				risks = append(risks, b.risk(kept))
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return risks, nil
}

// basis is a data set of the spline problem in coordinates of the basis
// √2cos 2πkx, √2sin 2πkx.
type basis struct {
	n, m   int // m = 2·Terms
	y      []float64
	z      []float64 // n×m, |k|^{−α/2} e_k(x_i)
	weight []float64 // |k|^{−α/2}
	target []float64 // of f
}

func newBasis(p data.Spline, n int, first uint64) *basis {
	m := 2 * p.Terms
	b := &basis{n: n, m: m, y: make([]float64, n), z: make([]float64, n*m), weight: make([]float64, m), target: make([]float64, m)}
	for k := range p.Terms {
		w := math.Pow(float64(k+1), -p.Alpha/2)
		b.weight[2*k], b.weight[2*k+1] = w, w
		b.target[2*k] = math.Sqrt2 * math.Pow(float64(k+1), -p.Order())
	}
	sampler := p.Sampler()
	x := make([]float64, 1)
	for i := range n {
		b.y[i] = sampler.At(first+uint64(i), x)
		row := b.z[i*m:][:m]
		for k := range p.Terms {
			// The phase is reduced before it is multiplied by 2π, because k·x is exact
			// to half an ulp of k.
			sin, cos := math.Sincos(2 * math.Pi * math.Mod(float64(k+1)*x[0], 1))
			row[2*k], row[2*k+1] = math.Sqrt2*cos*b.weight[2*k], math.Sqrt2*sin*b.weight[2*k]
		}
	}
	return b
}

// gram returns K = ZZᵀ.
func (b *basis) gram() []float64 {
	n := b.n
	k := make([]float64, n*n)
	blocked.Syrk(1, false, blocked.New(n, b.m, b.z), 1, 0, blocked.New(n, n, k))
	for i := range n {
		for j := range i {
			k[j*n+i] = k[i*n+j]
		}
	}
	return k
}

func diagonal(k []float64, n int) []float64 {
	d := make([]float64, n)
	for i := range d {
		d[i] = k[i*n+i]
	}
	return d
}

// risk returns ½E(g(x) − f(x))² of g = Σ_i a_i k(x_i, ·).
func (b *basis) risk(a []float64) float64 {
	g := make([]float64, b.m)
	blocked.Gemv(1, true, blocked.New(b.n, b.m, b.z), a, 1, 0, g)
	sum := 0.0
	for k, v := range g {
		e := b.weight[k]*v - b.target[k]
		sum += e * e
	}
	return sum / 2
}

// minimum returns the place and the value of the minimum of log risk. It fits a
// parabola in log t through the points up to a factor 2 from the least one. If the
// parabola has no minimum near, it returns the least point itself. inside is false if
// the least is the last.
func minimum(grid []int, risk []float64) (steps, least float64, inside bool) {
	best := 0
	for j, v := range risk {
		if v < risk[best] {
			best = j
		}
	}
	at := float64(grid[best])
	var x, y []float64
	for j, t := range grid {
		if l := math.Log(float64(t) / at); math.Abs(l) <= math.Ln2 {
			x, y = append(x, l), append(y, math.Log(risk[j]))
		}
	}
	inside = best < len(grid)-1
	c, ok := parabola(x, y)
	if vertex := -c[1] / (2 * c[2]); ok && c[2] > 0 && math.Abs(vertex) <= math.Ln2 {
		return at * math.Exp(vertex), math.Exp(c[0] + c[1]*vertex/2), inside
	}
	return at, risk[best], inside
}

// parabola returns the least squares fit c_0 + c_1x + c_2x².
func parabola(x, y []float64) (c [3]float64, ok bool) {
	var s [5]float64
	var r [3]float64
	for i, v := range x {
		p := 1.0
		for j := range s {
			s[j] += p
			if j < 3 {
				r[j] += p * y[i]
			}
			p *= v
		}
	}
	a := [3][4]float64{{s[0], s[1], s[2], r[0]}, {s[1], s[2], s[3], r[1]}, {s[2], s[3], s[4], r[2]}}
	for j := range a { // positive definite for three points, so no pivoting
		if a[j][j] < 1e-12 {
			return c, false
		}
		for i := j + 1; i < 3; i++ {
			f := a[i][j] / a[j][j]
			for k := j; k < 4; k++ {
				a[i][k] -= f * a[j][k]
			}
		}
	}
	for j := 2; j >= 0; j-- {
		c[j] = a[j][3]
		for k := j + 1; k < 3; k++ {
			c[j] -= a[j][k] * c[k]
		}
		c[j] /= a[j][j]
	}
	return c, true
}
