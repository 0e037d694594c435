package bo

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/internal/stream"
)

// many has functions of 50 to 500 coordinates. Branin's and Hartmann's functions look at two and six
// of them. The others are validation losses of a Lasso with a penalty for each of its inputs, after
// LassoBench (Šehić, Gramfort, Salmon and Nardi, 2022).
var many = Suite{
	Name: "many", Title: "Many coordinates", Source: "packages internal/problems and bench/bo", Log: true,
	Problems: manyProblems(),
}

func manyProblems() (out []Listed) {
	for _, d := range []int{50, 100, 200, 500} {
		out = append(out, embedded("branin", d, problems.Branin{}), embedded("hartmann6", d, problems.Hartmann6{}))
		if name := fmt.Sprintf("many/lasso-d%03d", d); d < 500 {
			out = append(out, Listed{name, Full, func(string) (Problem, error) { return lasso(name, d) }})
		}
	}
	return out
}

// embedded lists f of some of d coordinates.
func embedded(name string, d int, f problems.Objective) Listed {
	name = fmt.Sprintf("many/%s-d%03d", name, d)
	return Listed{name, Full, func(string) (Problem, error) {
		from, to := f.Bounds()
		_, best, _ := f.Optimum()
		at := stream.New(stream.Derive(uint64(d), name, 0)).Perm(d)[:len(from)]
		lo, hi, x := make([]float64, d), make([]float64, d), make([]float64, len(from))
		for i := range hi {
			hi[i] = 1
		}
		return newBox(name, lo, hi, func(u []float64) float64 {
			for i, j := range at {
				x[i] = from[i] + u[j]*(to[i]-from[i])
			}
			return -f.Value(x)
		}, -best)
	}}
}

// lasso has d inputs of which a twentieth counts, d/2 rows to learn from and d/2 rows to validate on,
// without noise. A coordinate is the penalty of an input, from 10⁻⁴ to 1 of the one that makes all
// weights zero. The loss is above 0, which it approaches with small penalties where they are due.
func lasso(name string, d int) (Problem, error) {
	rng := stream.New(stream.Derive(uint64(d), name, 0))
	n, weights := d/2, make([]float64, d)
	for _, j := range rng.Perm(d)[:max(d/20, 2)] {
		weights[j] = math.Copysign(1+rng.Float64(), rng.Float64()-0.5)
	}
	columns, y := make([][]float64, d), make([]float64, 2*n)
	lo, hi, most := make([]float64, d), make([]float64, d), 0.0
	for j := range columns {
		columns[j] = make([]float64, 2*n)
		hi[j] = 1
		for i := range columns[j] {
			columns[j][i] = rng.NormFloat64()
			y[i] += weights[j] * columns[j][i]
		}
	}
	for j := range columns {
		most = max(most, math.Abs(product(columns[j][:n], y[:n])))
	}
	return newBox(name, lo, hi, func(u []float64) float64 {
		w, left := make([]float64, d), append([]float64(nil), y...)
		for range 100 { // sweeps of coordinate descent
			for j, x := range columns {
				square := product(x[:n], x[:n])
				v := product(x[:n], left[:n]) + w[j]*square
				v = math.Copysign(max(math.Abs(v)-most*math.Pow(10, 4*u[j]-4), 0)/square, v)
				for i := range left {
					left[i] += (w[j] - v) * x[i]
				}
				w[j] = v
			}
		}
		return product(left[n:], left[n:]) / float64(n)
	}, 0)
}

func product(a, b []float64) (sum float64) {
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
