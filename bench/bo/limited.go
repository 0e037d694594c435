package bo

import (
	"math"

	"github.com/bkbtuner/bkb/tuner/space"
)

// Limited is a Problem with metrics that must not be above 0. Evaluate and True fail where
// one is.
type Limited interface {
	Problem
	// Metrics returns the names of the metrics.
	Metrics() []string
	// Measure returns the value and the metrics of c, whether or not these are above 0.
	Measure(c space.Config) (value float64, metrics []float64)
}

// limits has problems whose best value lies at the limit of a metric. The shares of uniform
// configurations that keep the limits are 65 % (townsend), 44 % (g24), 37 % (network), 27 %
// (g04), 26 % (welded-beam), 1.8 % (gardner), 0.9 % (g08) and 0.8 % (spring).
var limits = Suite{
	Name: "limits", Title: "Limits on metrics", Log: true,
	Source: "Gardner et al. 2014; Townsend 2014; Liang et al. 2006 (CEC 2006); Arora 1989; Rao 1996",
	Problems: []Listed{
		{"limits/townsend", Smoke, townsend},
		{"limits/gardner", Standard, gardner},
		{"limits/g24", Standard, g24},
		{"limits/g08", Standard, g08},
		{"limits/g04", Standard, g04},
		{"limits/spring", Standard, spring},
		{"limits/welded-beam", Standard, weldedBeam},
		{"limits/network", Standard, network},
	},
}

// limited is a formula with metrics.
type limited struct {
	*formula
	metrics []string
	measure func(c space.Config) (float64, []float64)
}

var _ Limited = limited{}

func newLimited(name string, best float64, metrics []string, measure func(c space.Config) (float64, []float64), parameters ...space.Parameter) (Problem, error) {
	f, err := newFormula(name, best, func(c space.Config) float64 {
		v, m := measure(c)
		if !keeps(m) {
			return math.Inf(1)
		}
		return v
	}, parameters...)
	return limited{f, metrics, measure}, err
}

// keeps reports whether no metric is above 0. NaN does not keep its limit.
func keeps(metrics []float64) bool {
	for _, m := range metrics {
		if !(m <= 0) {
			return false
		}
	}
	return true
}

// Metrics implements [Limited].
func (l limited) Metrics() []string { return l.metrics }

// Measure implements [Limited].
func (l limited) Measure(c space.Config) (value float64, metrics []float64) { return l.measure(c) }

// gardner is the second problem of Gardner, Kusner, Xu, Weinberger and Cunningham, Bayesian
// Optimization with Inequality Constraints, 2014. The best value is asin(0.95) − 1.
func gardner(string) (Problem, error) {
	return newLimited("limits/gardner", math.Asin(0.95)-1, []string{"c"}, func(c space.Config) (float64, []float64) {
		x, y := number(c, "x"), number(c, "y")
		return math.Sin(x) + y, []float64{math.Sin(x)*math.Sin(y) + 0.95}
	}, space.NewFloat("x", 0, 6), space.NewFloat("y", 0, 6))
}

// townsend is the function of Townsend, Constrained optimization in Chebfun, 2014.
func townsend(string) (Problem, error) {
	square := func(v float64) float64 { return v * v }
	return newLimited("limits/townsend", -2.023988364, []string{"c"}, func(c space.Config) (float64, []float64) {
		x, y := number(c, "x"), number(c, "y")
		t := math.Atan2(x, y)
		edge := square(2*math.Cos(t)-0.5*math.Cos(2*t)-0.25*math.Cos(3*t)-0.125*math.Cos(4*t)) + square(2*math.Sin(t))
		return -square(math.Cos((x-0.1)*y)) - x*math.Sin(3*x+y), []float64{x*x + y*y - edge}
	}, space.NewFloat("x", -2.25, 2.5), space.NewFloat("y", -2.5, 1.75))
}

func g24(string) (Problem, error) {
	return newLimited("limits/g24", -5.508013274, []string{"c1", "c2"}, func(c space.Config) (float64, []float64) {
		x, y := number(c, "x"), number(c, "y")
		return -x - y, []float64{
			y - 2 + x*x*(-8+x*(8-2*x)),
			y - 36 + x*(96+x*(-88+x*(32-4*x))),
		}
	}, space.NewFloat("x", 0, 3), space.NewFloat("y", 0, 4))
}

func g08(string) (Problem, error) {
	return newLimited("limits/g08", -0.0958250415, []string{"c1", "c2"}, func(c space.Config) (float64, []float64) {
		x, y := number(c, "x"), number(c, "y")
		s := math.Sin(2 * math.Pi * x)
		return -s * s * s * math.Sin(2*math.Pi*y) / (x * x * x * (x + y)), []float64{x*x - y + 1, 1 - x + (y-4)*(y-4)}
	}, space.NewFloat("x", 0.01, 10), space.NewFloat("y", 0.01, 10))
}

func g04(string) (Problem, error) {
	return newLimited("limits/g04", -30665.5388, []string{"c1", "c2", "c3"}, func(c space.Config) (float64, []float64) {
		a, b, d, e, f := number(c, "x1"), number(c, "x2"), number(c, "x3"), number(c, "x4"), number(c, "x5")
		u := 85.334407 + 0.0056858*b*f + 0.0006262*a*e - 0.0022053*d*f
		v := 80.51249 + 0.0071317*b*f + 0.0029955*a*b + 0.0021813*d*d
		w := 9.300961 + 0.0047026*d*f + 0.0012547*a*d + 0.0019085*d*e
		return 5.3578547*d*d + 0.8356891*a*f + 37.293239*a - 40792.141,
			[]float64{math.Abs(u-46) - 46, math.Abs(v-100) - 10, math.Abs(w-22.5) - 2.5}
	}, space.NewFloat("x1", 78, 102), space.NewFloat("x2", 33, 45), space.NewFloat("x3", 27, 45), space.NewFloat("x4", 27, 45), space.NewFloat("x5", 27, 45))
}

// spring is the weight of a coil spring (Arora, Introduction to Optimum Design, 1989).
func spring(string) (Problem, error) {
	return newLimited("limits/spring", 0.01266523, []string{"deflection", "shear", "surge", "size"}, func(c space.Config) (float64, []float64) {
		wire, coil, turns := number(c, "wire"), number(c, "coil"), number(c, "turns")
		return (turns + 2) * coil * wire * wire, []float64{
			1 - coil*coil*coil*turns/(71785*wire*wire*wire*wire),
			(4*coil*coil-wire*coil)/(12566*(coil*wire*wire*wire-wire*wire*wire*wire)) + 1/(5108*wire*wire) - 1,
			1 - 140.45*wire/(coil*coil*turns),
			(wire+coil)/1.5 - 1,
		}
	}, space.NewFloat("wire", 0.05, 2), space.NewFloat("coil", 0.25, 1.3), space.NewFloat("turns", 2, 15))
}

// weldedBeam is the cost of a welded beam (Rao, Engineering Optimization, 1996). The metrics
// are in units of their limits.
func weldedBeam(string) (Problem, error) {
	const load, arm, young, shear = 6000.0, 14.0, 30e6, 12e6
	return newLimited("limits/welded-beam", 1.7248523, []string{"shear", "bending", "weld", "deflection", "buckling"}, func(c space.Config) (float64, []float64) {
		h, l, t, b := number(c, "h"), number(c, "l"), number(c, "t"), number(c, "b")
		half := (h + t) / 2
		direct := load / (math.Sqrt2 * h * l)
		radius := math.Sqrt(l*l/4 + half*half)
		torsion := load * (arm + l/2) * radius / (2 * math.Sqrt2 * h * l * (l*l/12 + half*half))
		tau := math.Sqrt(direct*direct + direct*torsion*l/radius + torsion*torsion)
		buckling := 4.013 * young * t * b * b * b / 6 / (arm * arm) * (1 - t/(2*arm)*math.Sqrt(young/(4*shear)))
		return 1.10471*h*h*l + 0.04811*t*b*(arm+l), []float64{
			tau/13600 - 1,
			6*load*arm/(b*t*t)/30000 - 1,
			h - b,
			4*load*arm*arm*arm/(young*t*t*t*b)/0.25 - 1,
			1 - buckling/load,
		}
	}, space.NewFloat("h", 0.1, 2), space.NewFloat("l", 0.1, 10), space.NewFloat("t", 0.1, 10), space.NewFloat("b", 0.1, 2))
}

// network is the problem classic/mixed with a limit on the time of a step, which grows with
// layers, width and the optimiser's state. All width that the limit leaves is used.
func network(string) (Problem, error) {
	p, err := mixed("")
	if err != nil {
		return nil, err
	}
	const most = 120
	time := func(c space.Config) float64 {
		state := 1.0
		if word(c, "opt") == "adam" {
			state = 1.5
		}
		return state * number(c, "layers") * number(c, "width")
	}
	best := math.Inf(1)
	for _, opt := range []struct {
		least, state float64
	}{{0.2, 1.5}, {0.28, 1}} { // of sgd, 0.3, is above what adam reaches
		for layers := 1.0; layers <= 5; layers++ {
			width := math.Floor(most / (opt.state * layers))
			away := min(math.Log2(width)-7+0.5*(layers-3), 0) // wider is better up to 0
			best = min(best, opt.least+0.05*(layers-3)*(layers-3)+0.03*away*away)
		}
	}
	return newLimited("limits/network", best, []string{"time"}, func(c space.Config) (float64, []float64) {
		return p.True(c), []float64{time(c)/most - 1}
	}, p.Space().Parameters()...)
}
