package bo

import (
	"math"

	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/tuner/space"
)

// classic has well-known test functions, and two problems on spaces that are not boxes.
var classic = Suite{
	Name: "classic", Title: "Classic test functions", Source: "packages internal/problems and bench/bo", Log: true,
	Problems: []Listed{
		maximised("classic/branin", Smoke, problems.Branin{}),
		maximised("classic/hartmann6", Standard, problems.Hartmann6{}),
		maximised("classic/ackley5", Standard, problems.Ackley{Dim: 5, Shift: 1.3}),
		{"classic/mixed", Standard, mixed},
		maximised("classic/hartmann3", Full, hartmann3{}),
		maximised("classic/ackley10", Full, problems.Ackley{Dim: 10, Shift: 1.3}),
		maximised("classic/levy8", Full, levy{Dim: 8}),
		maximised("classic/rastrigin4", Full, rastrigin{Dim: 4, Shift: 1.3}),
		{"classic/pressure-vessel", Full, pressureVessel},
	},
}

// mixed resembles the training of a network. It has floats on two scales, ints, steps, a
// category, and two parameters that only some categories have. Its least value is 0.2, with
// adam, lr 1e-3, beta 0.93, 3 layers of width 128 and drop 0.3.
func mixed(string) (Problem, error) {
	square := func(v float64) float64 { return v * v }
	return newFormula("classic/mixed", 0.2, func(c space.Config) float64 {
		v, lr := 0.0, math.Log10(number(c, "lr"))
		switch word(c, "opt") {
		case "sgd":
			v = 0.3 + 0.1*square(lr+1.2) + 2*square(number(c, "momentum")-0.9)
		case "adam":
			v = 0.2 + 0.15*square(lr+3) + 3*square(number(c, "beta")-0.93)
		default:
			v = 0.28 + 0.2*square(lr+3.3) + square(number(c, "beta")-0.8)
		}
		layers, width := number(c, "layers")-3, math.Log2(number(c, "width"))-7
		return v + 0.05*square(layers) + 0.03*square(width+0.5*layers) + 0.5*square(number(c, "drop")-0.3)
	},
		space.NewFloat("lr", 1e-5, 1).WithScale(space.Log),
		space.NewInt("layers", 1, 5),
		space.NewCategorical("opt", texts("sgd", "adam", "rms")...),
		space.NewFloat("momentum", 0, 0.99).Given("opt", space.String("sgd")),
		space.NewFloat("beta", 0.5, 0.999).Given("opt", texts("adam", "rms")...),
		space.NewInt("width", 8, 512).WithScale(space.Log),
		space.NewFloat("drop", 0, 0.8).WithStep(space.Float(0.1)),
	)
}

// pressureVessel is the cost of a cylinder with two round ends that holds a volume under
// pressure (Sandgren 1990, Kannan and Kramer 1994). Steel comes in steps of 1/16 inch.
// Designs that are too thin or too small fail. The least cost, 6059.7143, is proved by Yang
// et al. 2013 (arXiv:1403.7793). There, shell and ends are as thin as allowed, and the
// volume is met exactly.
func pressureVessel(string) (Problem, error) {
	cost := func(shell, head, radius, length float64) float64 {
		return 0.6224*shell*radius*length + 1.7781*head*radius*radius + 3.1661*shell*shell*length + 19.84*shell*shell*radius
	}
	const least, volume = 0.0193, 1_296_000 // thickness of the shell per radius, and cubic inches
	radius := 0.8125 / least
	length := (volume - 4.0/3*math.Pi*radius*radius*radius) / (math.Pi * radius * radius)
	return newFormula("classic/pressure-vessel", cost(0.8125, 0.4375, radius, length), func(c space.Config) float64 {
		shell, head, r, l := number(c, "shell"), number(c, "head"), number(c, "radius"), number(c, "length")
		if shell < least*r || head < 0.00954*r || math.Pi*r*r*(l+4.0/3*r) < volume {
			return math.Inf(1)
		}
		return cost(shell, head, r, l)
	},
		space.NewFloat("shell", 0.0625, 6.1875).WithStep(space.Float(0.0625)),
		space.NewFloat("head", 0.0625, 6.1875).WithStep(space.Float(0.0625)),
		space.NewFloat("radius", 10, 200),
		space.NewFloat("length", 10, 200),
	)
}
