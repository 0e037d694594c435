package propose

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
)

// task is a function to minimize on a space.
type task struct {
	Name  string
	Space *space.Space
	Value func(c space.Config) float64
	Best  float64 // the least value
}

// boxTask minimizes the negative of a problem of internal/problems.
func boxTask(t labtest.Fataler, f problems.Objective) task {
	lo, hi := f.Bounds()
	var fields []string
	for i := range lo {
		fields = append(fields, fmt.Sprintf(`"x%02d": {"type": "float", "low": %v, "high": %v}`, i, lo[i], hi[i]))
	}
	_, best, _ := f.Optimum()
	return task{f.Name(), labtest.Parse(t, "{"+strings.Join(fields, ",")+"}"), func(c space.Config) float64 {
		x := make([]float64, len(lo))
		for i := range x {
			v, _ := c.Get(fmt.Sprintf("x%02d", i))
			x[i], _ = v.AsFloat()
		}
		return -f.Value(x)
	}, -best}
}

// function is a function like BBOB's to minimize, at least 0.
type function struct {
	Label string
	Dim   int
	F     func(x []float64) float64
}

// Name returns the label.
func (f function) Name() string { return f.Label }

// Bounds returns the bounds of BBOB.
func (f function) Bounds() (lo, hi []float64) {
	return slices.Repeat([]float64{-5}, f.Dim), slices.Repeat([]float64{5}, f.Dim)
}

// Value returns a number that is larger for better points.
func (f function) Value(x []float64) float64 { return -f.F(x) }

// Optimum is 0, at an unknown point.
func (f function) Optimum() ([]float64, float64, bool) { return nil, 0, true }

func shifted(x []float64) []float64 {
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v - 3*math.Sin(float64(i)*1.7+0.4)
	}
	return y
}

// tasks are problems of many kinds, the first of them Branin's function.
func tasks(t labtest.Fataler) []task {
	mixed := labtest.Parse(t, `{"lr": {"type": "float", "low": 1e-5, "high": 1, "scale": "log"}, "layers": {"type": "int", "low": 1, "high": 5},
		"opt": {"type": "categorical", "values": ["sgd", "adam", "rms"]}, "momentum": {"type": "float", "low": 0, "high": 0.99, "when": {"opt": "sgd"}},
		"beta": {"type": "float", "low": 0.5, "high": 0.999, "when": {"opt": ["adam", "rms"]}}, "width": {"type": "int", "low": 8, "high": 512, "scale": "log"},
		"drop": {"type": "float", "low": 0, "high": 0.8, "step": 0.1}}`)
	num := func(c space.Config, name string) float64 {
		v, ok := c.Get(name)
		if !ok {
			return math.NaN()
		}
		if n, ok := v.AsInt(); ok {
			return float64(n)
		}
		x, _ := v.AsFloat()
		return x
	}
	out := []task{
		boxTask(t, problems.Branin{}), boxTask(t, problems.Hartmann6{}), boxTask(t, problems.Ackley{Dim: 5, Shift: 1.3}),
		{"mixed", mixed, func(c space.Config) float64 {
			o, _ := c.Get("opt")
			name, _ := o.AsString()
			lr, v := math.Log10(num(c, "lr")), 0.0
			switch name {
			case "sgd":
				v = 0.3 + 0.1*math.Pow(lr+1.2, 2) + 2*math.Pow(num(c, "momentum")-0.9, 2)
			case "adam":
				v = 0.2 + 0.15*math.Pow(lr+3, 2) + 3*math.Pow(num(c, "beta")-0.93, 2)
			default:
				v = 0.28 + 0.2*math.Pow(lr+3.3, 2) + math.Pow(num(c, "beta")-0.8, 2)
			}
			l, w := num(c, "layers"), math.Log2(num(c, "width"))
			return v + 0.05*math.Pow(l-3, 2) + 0.03*math.Pow(w-7+0.5*(l-3), 2) + 0.5*math.Pow(num(c, "drop")-0.3, 2)
		}, 0.2},
		boxTask(t, function{"rosenbrock5", 5, func(x []float64) float64 {
			y, s := shifted(x), 0.0
			for i := range y {
				y[i] = y[i]/2 + 1
			}
			for i := 0; i+1 < len(y); i++ {
				s += 100*math.Pow(y[i]*y[i]-y[i+1], 2) + math.Pow(y[i]-1, 2)
			}
			return s
		}}),
		boxTask(t, function{"ellipsoid10", 10, func(x []float64) float64 {
			y, s := shifted(x), 0.0
			for i, v := range y {
				s += math.Pow(10, 4*float64(i)/float64(len(y)-1)) * v * v
			}
			return s
		}}),
		boxTask(t, function{"rastrigin4", 4, func(x []float64) float64 {
			s := 0.0
			for _, v := range shifted(x) {
				s += 10*(1-math.Cos(2*math.Pi*v*0.6)) + v*v
			}
			return s
		}}),
		boxTask(t, function{"levy8", 8, func(x []float64) float64 {
			w := shifted(x)
			for i := range w {
				w[i] = 1 + w[i]/4
			}
			n := len(w) - 1
			s := math.Pow(math.Sin(math.Pi*w[0]), 2) + math.Pow(w[n]-1, 2)*(1+math.Pow(math.Sin(2*math.Pi*w[n]), 2))
			for i := 0; i < n; i++ {
				s += math.Pow(w[i]-1, 2) * (1 + 10*math.Pow(math.Sin(math.Pi*w[i]+1), 2))
			}
			return s
		}}),
	}
	return out
}
