package problems

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/internal/sobol"
	"github.com/bkbtuner/bkb/internal/stream"
)

// Objective is a function on a box, to be maximized.
type Objective interface {
	// Name returns the name of the function.
	Name() string
	// Bounds returns the corners of the box, of length d.
	Bounds() (lo, hi []float64)
	// Value returns f(x) for x of length d within the bounds.
	Value(x []float64) float64
	// Optimum returns a maximiser and the maximum. If it is not known, known is false.
	Optimum() (x []float64, value float64, known bool)
}

// Branin is −1 times the Branin function on [−5, 10]×[0, 15], with three maximisers.
type Branin struct{}

func (Branin) Name() string               { return "branin" }
func (Branin) Bounds() (lo, hi []float64) { return []float64{-5, 0}, []float64{10, 15} }

func (Branin) Value(x []float64) float64 {
	b, c := 5.1/(4*math.Pi*math.Pi), 5/math.Pi
	u := x[1] - b*x[0]*x[0] + c*x[0] - 6
	return -(u*u + 10*(1-1/(8*math.Pi))*math.Cos(x[0]) + 10)
}

func (f Branin) Optimum() (x []float64, value float64, known bool) {
	return []float64{math.Pi, 2.275}, -5 / (4 * math.Pi), true
}

// Hartmann6 is −1 times the Hartmann function on [0, 1]^6.
type Hartmann6 struct{}

func (Hartmann6) Name() string               { return "hartmann6" }
func (Hartmann6) Bounds() (lo, hi []float64) { return cube(6, 0, 1) }

var (
	hartmannAlpha = [4]float64{1, 1.2, 3, 3.2}
	hartmannA     = [4][6]float64{
		{10, 3, 17, 3.5, 1.7, 8},
		{0.05, 10, 17, 0.1, 8, 14},
		{3, 3.5, 1.7, 10, 17, 8},
		{17, 8, 0.05, 10, 0.1, 14},
	}
	hartmannP = [4][6]float64{
		{0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886},
		{0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991},
		{0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650},
		{0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381},
	}
)

func (Hartmann6) Value(x []float64) float64 {
	sum := 0.0
	for i, alpha := range hartmannAlpha {
		e := 0.0
		for c, v := range x {
			d := v - hartmannP[i][c]
			e += hartmannA[i][c] * d * d
		}
		sum += alpha * math.Exp(-e)
	}
	return sum
}

func (Hartmann6) Optimum() (x []float64, value float64, known bool) {
	return []float64{0.20168952, 0.15001069, 0.47687398, 0.27533243, 0.31165162, 0.65730054}, 3.32236801141551, true
}

// Ackley is −1 times the Ackley function of Dim inputs on [−5, 5]^Dim, with the
// maximum moved to (Shift, …, Shift).
type Ackley struct {
	Dim   int
	Shift float64
}

func (f Ackley) Name() string               { return fmt.Sprintf("ackley%d", f.Dim) }
func (f Ackley) Bounds() (lo, hi []float64) { return cube(f.Dim, -5, 5) }

func (f Ackley) Value(x []float64) float64 {
	square, cosine := 0.0, 0.0
	for _, v := range x {
		square += (v - f.Shift) * (v - f.Shift)
		cosine += math.Cos(2 * math.Pi * (v - f.Shift))
	}
	n := float64(len(x))
	return 20*math.Exp(-0.2*math.Sqrt(square/n)) + math.Exp(cosine/n) - 20 - math.E
}

func (f Ackley) Optimum() (x []float64, value float64, known bool) {
	return slices.Repeat([]float64{f.Shift}, f.Dim), 0, true
}

// Forrester is −1 times the function (6x − 2)² sin(12x − 4) on [0, 1].
type Forrester struct{}

func (Forrester) Name() string               { return "forrester" }
func (Forrester) Bounds() (lo, hi []float64) { return cube(1, 0, 1) }

func (Forrester) Value(x []float64) float64 {
	u := 6*x[0] - 2
	return -u * u * math.Sin(12*x[0]-4)
}

func (Forrester) Optimum() (x []float64, value float64, known bool) {
	return []float64{0.757248757841856}, 6.02074005576708, true
}

// Draw is a function drawn from a Gaussian process on [0, 1]^Dim with the
// Gaussian kernel of some length scale, by 1500 random Fourier features.
type Draw struct {
	dim    int
	freq   []float64
	phase  []float64
	weight []float64
}

// drawFeatures is the number of features of a Draw.
const drawFeatures = 1500

// NewDraw returns the draw of a seed.
func NewDraw(dim int, lengthScale float64, seed uint64) *Draw {
	r := stream.New(stream.Derive(seed, "problems draw", 0))
	f := &Draw{
		dim: dim, freq: make([]float64, drawFeatures*dim),
		phase: make([]float64, drawFeatures), weight: make([]float64, drawFeatures),
	}
	for j := range f.phase {
		for c := range dim {
			f.freq[j*dim+c] = r.NormFloat64() / lengthScale
		}
		f.phase[j] = 2 * math.Pi * r.Float64()
		f.weight[j] = math.Sqrt(2.0/drawFeatures) * r.NormFloat64()
	}
	return f
}

func (f *Draw) Name() string               { return fmt.Sprintf("draw%d", f.dim) }
func (f *Draw) Bounds() (lo, hi []float64) { return cube(f.dim, 0, 1) }

func (f *Draw) Value(x []float64) float64 {
	sum := 0.0
	for j, w := range f.weight {
		arg := f.phase[j]
		for c, v := range x {
			arg += f.freq[j*f.dim+c] * v
		}
		sum += w * math.Cos(arg)
	}
	return sum
}

func (f *Draw) Optimum() (x []float64, value float64, known bool) { return nil, math.NaN(), false }

func cube(d int, lo, hi float64) (l, h []float64) {
	return slices.Repeat([]float64{lo}, d), slices.Repeat([]float64{hi}, d)
}

// Environment is an objective on finite arms, with normal noise.
type Environment struct {
	Dim    int
	Points []float64 // of the arms, in the unit cube, row-major
	Values []float64 // mean rewards, of mean 0 and variance 1
	Best   int       // the arm with the largest
	Noise  float64   // the standard deviation ξ of rewards
	Seed   uint64
}

// NewEnvironment returns f on the given number of arms. The Sobol' points are
// scrambled by the seed.
func NewEnvironment(f Objective, arms int, noise float64, seed uint64) *Environment {
	lo, hi := f.Bounds()
	d := len(lo)
	e := &Environment{Dim: d, Points: make([]float64, arms*d), Values: make([]float64, arms), Noise: noise, Seed: seed}
	seq, x := sobol.New(d, stream.Derive(seed, "problems arms", 0)), make([]float64, d)
	for i := range arms {
		u := e.Points[i*d : (i+1)*d]
		seq.At(uint32(i), u)
		for c := range x {
			x[c] = lo[c] + u[c]*(hi[c]-lo[c])
		}
		e.Values[i] = f.Value(x)
	}
	e.standardise()
	return e
}

func (e *Environment) standardise() {
	n, sum := float64(len(e.Values)), 0.0
	for _, v := range e.Values {
		sum += v
	}
	mean, square := sum/n, 0.0
	for _, v := range e.Values {
		square += (v - mean) * (v - mean)
	}
	sd := math.Sqrt(square / n)
	sd = cmp.Or(sd, 1)
	for i, v := range e.Values {
		e.Values[i] = (v - mean) / sd
		if e.Values[i] > e.Values[e.Best] {
			e.Best = i
		}
	}
}

// Reward returns the reward of an arm at a step. The noise depends only on the seed and the
// step, so that policies can be compared in pairs.
func (e *Environment) Reward(arm, step int) float64 {
	r := stream.New(stream.Derive(e.Seed, "problems noise", uint64(step)))
	return e.Values[arm] + e.Noise*r.NormFloat64()
}

// Regret is the regret of a run.
type Regret struct {
	env        *Environment
	Pulls      int
	Cumulative float64 // R_t = Σ_s f(x*) − f(x_s), Carratino (2020), (6.1)
	Simple     float64 // the least f(x*) − f(x_s) so far
}

// Account returns a new, empty Regret.
func (e *Environment) Account() *Regret { return &Regret{env: e, Simple: math.Inf(1)} }

// Of returns the regret of an arm.
func (e *Environment) Of(arm int) float64 { return e.Values[e.Best] - e.Values[arm] }

// Pull adds a pull.
func (r *Regret) Pull(arm int) {
	v := r.env.Of(arm)
	r.Pulls++
	r.Cumulative += v
	r.Simple = min(r.Simple, v)
}

// Relative returns R_t divided by the expected regret of arms pulled uniformly at random. A
// policy that learns nothing has 1.
func (r *Regret) Relative() float64 {
	if r.Pulls == 0 {
		return 1
	}
	sum := 0.0
	for a := range r.env.Values {
		sum += r.env.Of(a)
	}
	return r.Cumulative / (sum / float64(len(r.env.Values)) * float64(r.Pulls))
}
