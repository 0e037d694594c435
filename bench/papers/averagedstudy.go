package papers

import (
	"context"
	"math"

	"gonum.org/v1/gonum/blas/blas64"
	vector "gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/learners/theory"
)

// averagedStudy finds the number of steps t*(n) after which averaged SGD has its least excess risk, as
// n grows, on the spline problem of section 5 of the paper. With x uniform on [0, 1) it is y = f(x) +
// N(0, 1), f = Σ_k 2cos(2πkx)/k^Order, with the kernel Σ_k 2cos(2πk(x − z))/k^Alpha and k up to Terms.
//
// It computes in the basis e_k of cosines and sines, z_k = k^{−Alpha/2}e_k(x), where the excess risk is
// half the squared distance of coefficients. It needs no test data and no series.
type averagedStudy struct {
	Alpha, Order float64
	Terms        int
	Sampling     minibatch.Sampling
	Sizes        []int // n, increasing, at least two
	// Repetitions are averaged, each with other data. The paper has 100.
	Repetitions int
	// Passes is the largest number of passes. A larger t* is not found.
	Passes int
	Seed   uint64
}

// averagedCurve is the result of an averagedStudy.
type averagedCurve struct {
	Steps []float64 // t*(n)
	Risk  []float64 // the mean excess risk there
	// Slope is the slope of log t* against log n, and RiskSlope that of log Risk.
	Slope, RiskSlope float64
	// AtEdge says that some t* is at the end of the passes, so that more passes are needed.
	AtEdge bool
	// Grid has the steps at which the risk was measured, for every n, and Risks the mean risks.
	Grid  [][]int
	Risks [][]float64
}

// gridRatio is the ratio of successive numbers of steps at which the risk is measured.
const gridRatio = 1.12

// Run makes the experiment, with Repetitions·Passes·n·Terms operations for every n.
func (s averagedStudy) Run(ctx context.Context) (*averagedCurve, error) {
	c := &averagedCurve{}
	for _, n := range s.Sizes {
		grid := s.grid(n)
		mean := make([]float64, len(grid))
		for rep := range s.Repetitions {
			risks, err := s.once(ctx, n, rep, grid)
			if err != nil {
				return nil, err
			}
			vector.AddScaled(mean, 1/float64(s.Repetitions), risks)
		}
		steps, risk, inside := minimum(grid, mean)
		c.Steps, c.Risk = append(c.Steps, steps), append(c.Risk, risk)
		c.Grid, c.Risks = append(c.Grid, grid), append(c.Risks, mean)
		c.AtEdge = c.AtEdge || !inside
	}
	c.Slope, c.RiskSlope = theory.Slope(s.Sizes, c.Steps), theory.Slope(s.Sizes, c.Risk)
	return c, nil
}

// grid returns the numbers of steps from n/8 to Passes·n.
func (s averagedStudy) grid(n int) []int {
	var out []int
	for t := max(1, float64(n)/8); t < float64(s.Passes*n); t *= gridRatio {
		if i := int(t); len(out) == 0 || i > out[len(out)-1] {
			out = append(out, i)
		}
	}
	return append(out, s.Passes*n)
}

// once returns the excess risks of θ̄_t for t on the grid, on one data set.
func (s averagedStudy) once(ctx context.Context, n, rep int, grid []int) ([]float64, error) {
	b := s.basis(n, rep)
	var risks []float64
	_, err := b.average(ctx, minibatch.Plan{Sampling: s.Sampling, BatchSize: 1}, s.Passes, stream.Derive(s.Seed, "averaged", uint64(rep)), func(t int, mean func() []float64) {
		if t == grid[len(risks)] {
			risks = append(risks, b.risk(mean()))
		}
	})
	return risks, err
}

// splineBasis is a data set in coordinates of √2cos 2πkx, √2sin 2πkx.
type splineBasis struct {
	n, m   int // m = 2·Terms
	y      []float64
	z      []float64 // n×m, k^{−Alpha/2} e_k(x_i)
	weight []float64 // k^{−Alpha/2}
	target []float64 // of f
}

func (s averagedStudy) basis(n, rep int) *splineBasis {
	m := 2 * s.Terms
	b := &splineBasis{n: n, m: m, y: make([]float64, n), z: make([]float64, n*m), weight: make([]float64, m), target: make([]float64, m)}
	for k := range s.Terms {
		w := math.Pow(float64(k+1), -s.Alpha/2)
		b.weight[2*k], b.weight[2*k+1] = w, w
		b.target[2*k] = math.Sqrt2 * math.Pow(float64(k+1), -s.Order)
	}
	rng := stream.New(stream.Derive(s.Seed, "averaged/data", uint64(rep)))
	for i := range n {
		x := rng.Float64()
		row := b.z[i*m:][:m]
		for k := range s.Terms {
			// The phase is reduced before it is multiplied by 2π, because k·x is exact to half an ulp of k.
			sin, cos := math.Sincos(2 * math.Pi * math.Mod(float64(k+1)*x, 1))
			row[2*k], row[2*k+1] = math.Sqrt2*cos*b.weight[2*k], math.Sqrt2*sin*b.weight[2*k]
			b.y[i] += math.Sqrt2 * cos * b.target[2*k]
		}
		b.y[i] += rng.NormFloat64()
	}
	return b
}

// average makes passes of averaged SGD with γ = 1/(4R²), calls at after each step t, and returns θ̄.
func (b *splineBasis) average(ctx context.Context, plan minibatch.Plan, passes int, seed uint64, at func(t int, mean func() []float64)) ([]float64, error) {
	bound := vector.Dot(b.z[:b.m], b.z[:b.m]) // R², the same of all rows
	theta, weighted, t := make([]float64, b.m), make([]float64, b.m), 0
	mean := func() []float64 { // with Σ_s sδ_s beside θ = Σ_s δ_s
		out := make([]float64, b.m)
		vector.AddScaledTo(out, theta, -1/float64(t+1), weighted)
		vector.Scale(float64(t+1)/float64(t), out)
		return out
	}
	rng := stream.New(seed)
	for range passes {
		err := plan.Deal(ctx, b.n, rng, func(idx []int) error {
			t++
			row := blas64.Vector{N: b.m, Inc: 1, Data: b.z[idx[0]*b.m:][:b.m]}
			delta := (b.y[idx[0]] - blas64.Dot(row, blas64.Vector{N: b.m, Inc: 1, Data: theta})) / (4 * bound)
			blas64.Axpy(delta, row, blas64.Vector{N: b.m, Inc: 1, Data: theta})
			blas64.Axpy(float64(t)*delta, row, blas64.Vector{N: b.m, Inc: 1, Data: weighted})
			at(t, mean)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return mean(), nil
}

// risk returns ½E(g(x) − f(x))² of g = ⟨θ, z⟩.
func (b *splineBasis) risk(theta []float64) float64 {
	sum := 0.0
	for k, v := range theta {
		e := b.weight[k]*v - b.target[k]
		sum += e * e
	}
	return sum / 2
}

// minimum returns the place and the value of the minimum of log risk. It fits a parabola in log t
// through the points up to a factor 2 from the least one. If the parabola has no minimum near, it
// returns the least point itself. inside is false if the least is the last.
func minimum(grid []int, risk []float64) (steps, least float64, inside bool) {
	best := vector.MinIdx(risk)
	at := float64(grid[best])
	inside = best < len(grid)-1
	var powers, y []float64
	for j, t := range grid {
		if l := math.Log(float64(t) / at); math.Abs(l) <= math.Ln2 {
			powers, y = append(powers, 1, l, l*l), append(y, math.Log(risk[j]))
		}
	}
	var c mat.VecDense
	if len(y) < 3 || c.SolveVec(mat.NewDense(len(y), 3, powers), mat.NewVecDense(len(y), y)) != nil {
		return at, risk[best], inside
	}
	if vertex := -c.AtVec(1) / (2 * c.AtVec(2)); c.AtVec(2) > 0 && math.Abs(vertex) <= math.Ln2 {
		return at * math.Exp(vertex), math.Exp(c.AtVec(0) + c.AtVec(1)*vertex/2), inside
	}
	return at, risk[best], inside
}
