package training

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// generated returns rows with d normal inputs and the target of f.
func generated(t *testing.T, n, d int, rng *rand.Rand, f func(x []float64) string) *Data {
	t.Helper()
	var b strings.Builder
	for j := range d {
		fmt.Fprintf(&b, "x%d,", j)
	}
	b.WriteString("y\n")
	x := make([]float64, d)
	for range n {
		for j := range x {
			x[j] = rng.NormFloat64()
			fmt.Fprintf(&b, "%.17g,", x[j])
		}
		b.WriteString(f(x) + "\n")
	}
	table := open(t, b.String(), dataset.Options{Target: []string{"y"}})
	out, err := Prepare(t.Context(), table, Split{Validation: 0.1, Test: 0.3, Seed: 1}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func trainOn(t *testing.T, name string, d *Data, v Values) *Trained {
	t.Helper()
	a, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	out, err := a.Train(t.Context(), d, Run{Values: v})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// predicted returns outputs and targets of a source.
func predicted(t *testing.T, m learners.Model, src data.Source) (f, y []float64) {
	t.Helper()
	y, err := learners.Targets(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	f = make([]float64, len(y))
	if err := m.Predict(t.Context(), f, src); err != nil {
		t.Fatal(err)
	}
	return f, y
}

// gramOf returns the kernel of the defaults for the rows of a, as columns, and b.
func gramOf(t *testing.T, p Problem, a, b data.Source) [][]float64 {
	t.Helper()
	rows := func(src data.Source) kernel.Rows {
		m, err := data.Load(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		return m.Rows()
	}
	x, y := rows(a), rows(b)
	out := make([][]float64, y.Len())
	p1, p2 := make([]float64, x.Dim()), make([]float64, x.Dim())
	for i := range out {
		out[i] = make([]float64, x.Len())
		kernel.CopyRow(p1, y, i)
		for j := range out[i] {
			kernel.CopyRow(p2, x, j)
			s := 0.0
			for c := range p1 {
				s += (p1[c] - p2[c]) * (p1[c] - p2[c])
			}
			out[i][j] = math.Exp(-s / (2 * p.MedianDistance * p.MedianDistance))
		}
	}
	return out
}

// solveNaively returns the solution of ax = b by Gaussian elimination with pivots.
func solveNaively(a [][]float64, b []float64) []float64 {
	n := len(b)
	m := make([][]float64, n)
	for i := range m {
		m[i] = append(append([]float64(nil), a[i]...), b[i])
	}
	for k := range n {
		best := k
		for i := k; i < n; i++ {
			if math.Abs(m[i][k]) > math.Abs(m[best][k]) {
				best = i
			}
		}
		m[k], m[best] = m[best], m[k]
		for i := k + 1; i < n; i++ {
			f := m[i][k] / m[k][k]
			for j := k; j <= n; j++ {
				m[i][j] -= f * m[k][j]
			}
		}
	}
	x := make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		x[i] = m[i][n]
		for j := i + 1; j < n; j++ {
			x[i] -= m[i][j] * x[j]
		}
		x[i] /= m[i][i]
	}
	return x
}

// Ten times more or less than the chosen λ has no less error on validation rows, and κ²/n has more on
// test rows. A race chooses λ too. A λ that is given stays.
func TestTrainChoosesLambda(t *testing.T) {
	wave := func(x []float64) float64 { return math.Sin(2*x[0]) + math.Cos(2*x[1]) }
	for name, f := range map[string]func(x []float64) string{
		"falkon":     func(x []float64) string { return num(wave(x)) },
		"log-falkon": func(x []float64) string { return fmt.Sprint("c", wave(x) > 0) },
	} {
		d := generated(t, 400, 2, rand.New(rand.NewPCG(1, 62)), f)
		with := func(lambda float64) *Trained { return trainOn(t, name, d, Values{"lambda": num(lambda)}) }
		auto, first := trainOn(t, name, d, Values{}), with(1.0/280)
		lambda, err := strconv.ParseFloat(auto.Values["lambda"], 64)
		if err != nil || first.Values["lambda"] != num(1.0/280) {
			t.Fatalf("%s: λ is %q with the error %g, and %q with %g for a given one", name, auto.Values["lambda"], auto.Error, first.Values["lambda"], first.Error)
		}
		for factor, gain := range map[float64]float64{0.1: smallerGain, 10: leastGain} {
			if other := with(factor * lambda); other.Error < gain*auto.Error {
				t.Errorf("%s: the validation error is %g with λ = %g, and %g with %g times that", name, auto.Error, lambda, other.Error, factor)
			}
		}
		var score [2]float64
		for i, m := range []learners.Model{auto.Model, first.Model} {
			y, g := predicted(t, m, d.Test)
			for j := range y {
				if name == "falkon" {
					score[i] += (y[j] - g[j]) * (y[j] - g[j])
				} else {
					score[i] += math.Log1p(math.Exp(-y[j] * g[j]))
				}
			}
		}
		if !(score[0] < 0.8*score[1]) {
			t.Errorf("%s: the test error is %g, and %g with κ²/n", name, score[0], score[1])
		}
		ranked, _, err := Race(t.Context(), d, Run{}, Racers())
		i := slices.IndexFunc(ranked, func(c Contender) bool { return c.Name == name })
		if err != nil || i < 0 || !(ranked[i].Error < 0.8*first.Error) {
			t.Errorf("the race is %v, and %s with κ²/n has %g: %v", ranked, name, first.Error, err)
		}
	}
}

// Interrupted in any fit, the result is the best so far. The text auto is no given λ.
func TestTrainKeepsTheBestLambda(t *testing.T) {
	d := generated(t, 200, 2, rand.New(rand.NewPCG(1, 63)), func(x []float64) string { return num(math.Sin(2*x[0]) + math.Cos(2*x[1])) })
	a, err := Find("falkon")
	if err != nil {
		t.Fatal(err)
	}
	// stopped trains until the given fit begins. fits is how many began.
	stopped := func(at int) (out *Trained, fits int, err error) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		last := math.MaxInt
		r := Run{Values: Values{"lambda": Auto}}
		r.Options.Progress = func(p learners.Progress) error {
			if p.Iteration <= last {
				fits++
			}
			if last = p.Iteration; fits == at {
				cancel()
			}
			return nil
		}
		out, err = a.Train(ctx, d, r)
		return out, fits, err
	}
	whole, n, err := stopped(-1)
	if err != nil || n < 5 || whole.Values["lambda"] == Auto {
		t.Fatalf("%d fits, λ = %q: %v", n, whole.Values["lambda"], err)
	}
	before := math.Inf(1)
	for at := 2; at <= n; at++ {
		out, _, err := stopped(at)
		if !errors.Is(err, context.Canceled) || out == nil || !(out.Error <= before) {
			t.Fatalf("stopped in fit %d, the result is %+v, and before the error was %g: %v", at, out, before, err)
		}
		if before = out.Error; at == n-1 && before != whole.Error { // the next λ has more error, and then all rows are fitted
			t.Errorf("stopped in the last search, the error is %g, and else %g", before, whole.Error)
		}
	}
}

// The model is the finished fit to all rows but the test rows, not an early step of a fit to a
// part of them.
func TestTrainFinishesOnAllRows(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 61))
		d := generated(t, 120, 2, rng, func(x []float64) string { return num(math.Sin(2*x[0]) + x[1] + 0.3*rng.NormFloat64()) })
		for _, name := range []string{"falkon", "krr", "nystrom"} {
			v := Values{"lambda": "1e-3"}
			if name != "krr" {
				v["centers"] = "84"
			}
			out := trainOn(t, name, d, v)
			known, err := d.Known()
			if err != nil || out.Rows != 84 {
				t.Fatal(out.Rows, err)
			}
			k := gramOf(t, out.Problem, known, known)
			for i := range k {
				k[i][i] += 1e-3 * 84
			}
			_, y := predicted(t, out.Model, known)
			c := solveNaively(k, y)
			f, _ := predicted(t, out.Model, d.Test)
			for i, row := range gramOf(t, out.Problem, known, d.Test) {
				want := 0.0
				for j, v := range row {
					want += v * c[j]
				}
				if math.Abs(f[i]-want) > 1e-5 {
					t.Fatalf("seed %d, %s: output %d is %v, want %v", seed, name, i, f[i], want)
				}
			}
		}
	}
}

// Logistic FALKON ends at its own λ, so that its log loss is that of Newton's method on the
// whole kernel matrix. A step at a larger λ may have the least class error.
func TestTrainedLogLoss(t *testing.T) {
	for seed := range uint64(3) {
		rng := rand.New(rand.NewPCG(seed, 62))
		d := generated(t, 150, 2, rng, func(x []float64) string {
			if x[0]+math.Sin(3*x[1])+0.3*rng.NormFloat64() > 0 {
				return "up"
			}
			return "down"
		})
		const lambda, n = 1e-4, 105
		out := trainOn(t, "log-falkon", d, Values{"lambda": "1e-4", "centers": strconv.Itoa(n)})
		if out.Measure != "log-loss" {
			t.Errorf("the measure is %s", out.Measure)
		}
		known, err := d.Known()
		if err != nil {
			t.Fatal(err)
		}
		k := gramOf(t, out.Problem, known, known)
		f, y := predicted(t, out.Model, known)
		// Newton: f = K(K + λnW⁻¹)⁻¹(f + (y − p)/W) with targets 0 and 1.
		g := make([]float64, n)
		var c []float64
		for range 60 {
			a, z := make([][]float64, n), make([]float64, n)
			for i := range a {
				p := 1 / (1 + math.Exp(-g[i]))
				w := p * (1 - p)
				a[i] = append([]float64(nil), k[i]...)
				a[i][i] += lambda * n / w
				z[i] = g[i] + ((y[i]+1)/2-p)/w
			}
			c = solveNaively(a, z)
			for i := range g {
				g[i] = 0
				for j, v := range k[i] {
					g[i] += v * c[j]
				}
			}
		}
		loss := func(f []float64) (sum float64) {
			for i, v := range f {
				sum += math.Log1p(math.Exp(-y[i]*v)) / n
			}
			return sum
		}
		if got, want := loss(f), loss(g); math.Abs(got-want) > 0.01*want {
			t.Errorf("seed %d: log loss %v on the training rows, want %v", seed, got, want)
		}
	}
}

// Learned length scales are used where they help the centres at hand, with a λ for these, and
// not where they do not.
func TestLearnedLengthsAreNoWorse(t *testing.T) {
	racetest.Alone(t)
	const seed = 1
	var rng *rand.Rand
	for name, f := range map[string]func(x []float64) string{
		"few inputs": func(x []float64) string { return num(math.Sin(3*x[0]) + 2*x[1]*x[1] + 0.02*rng.NormFloat64()) },
		"smooth":     func(x []float64) string { return num(x[0] + x[1]*x[1]/3 + x[2]*x[3] + 0.02*rng.NormFloat64()) },
		"noise":      func(x []float64) string { return num(0.1*x[0] + rng.NormFloat64()) },
	} {
		rng = rand.New(rand.NewPCG(seed, 63))
		d := generated(t, 420, 4, rng, f)
		test := func(v Values) float64 {
			v["centers"] = "100"
			f, y := predicted(t, trainOn(t, "falkon", d, v).Model, d.Test)
			return learners.RMSE(f, y, 1)
		}
		without := test(Values{})
		for _, v := range []Values{{"length-scale": "auto"}, {"relevance": "learned"}} {
			if with := test(v); with > 1.02*without {
				t.Errorf("seed %d, %s: rmse %v with learned length scales %v, %v without", seed, name, with, v, without)
			}
		}
	}
}
