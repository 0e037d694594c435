package bo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/space"
)

// generated has problems on which proposers stay at the first good place or are misled. A
// name ends with the number that the problem is drawn from. Settings are chosen on odd
// numbers, so even ones are fair.
//
//   - basins have eight Gaussian peaks. The best is narrow, and a wide one has 0.75 of its
//     height.
//   - branches have three branches with their own parameters. The best optimum is in the
//     branch that is mostly the worst.
//   - outliers are bowls where one of 20 measurements returns 1e30.
//   - rough are exact tables with an effect of each cell that no neighbour shares.
//   - cliff is a bowl that fails beside its optimum. In wedge, the optimum is in the corner
//     between two regions that fail, and in pocket a ball beside the optimum fails. In
//     cliff-mixed, large values fail with one of three categories.
//   - flaky is a bowl of which a quarter fails at random, as does valley, a narrow one.
var generated = Suite{
	Name: "generated", Title: "Generated", Source: "package bench/bo", Log: true,
	Problems: generatedProblems(),
}

// instances is the number of problems of each kind.
const instances = 8

func generatedProblems() []Listed {
	var out []Listed
	for _, kind := range []struct {
		name string
		make func(name string, rng *rand.Rand) (Problem, error)
	}{
		{"basins-d03", func(name string, rng *rand.Rand) (Problem, error) { return basins(name, 3, rng) }},
		{"basins-d05", func(name string, rng *rand.Rand) (Problem, error) { return basins(name, 5, rng) }},
		{"branches", branches},
		{"outliers-d04", outliers},
		{"rough", rough},
		{"cliff-d03", cliff},
		{"wedge-d05", wedge},
		{"pocket-d04", pocket},
		{"cliff-mixed", mixedCliff},
		{"flaky-d04", flaky},
		{"valley-d03", valley},
	} {
		for i := range instances {
			tier := Full
			if i < 2 {
				tier = Standard
			}
			name := fmt.Sprintf("generated/%s-s%d", kind.name, i+1)
			out = append(out, Listed{name, tier, func(string) (Problem, error) {
				return kind.make(name, stream.New(stream.Derive(uint64(i+1), "bench bo "+kind.name, 0)))
			}})
		}
	}
	return out
}

// unitBox returns a function of the unit cube.
func unitBox(name string, d int, value func(x []float64) float64, best float64) (*formula, error) {
	return newBox(name, make([]float64, d), slices.Repeat([]float64{1}, d), value, best)
}

// place returns a point at a distance from the faces of the unit cube.
func place(d int, margin float64, rng *rand.Rand) []float64 {
	x := make([]float64, d)
	for c := range x {
		x[c] = margin + (1-2*margin)*rng.Float64()
	}
	return x
}

// apart returns the squared distance.
func apart(x, y []float64) float64 {
	q := 0.0
	for c, v := range x {
		q += (v - y[c]) * (v - y[c])
	}
	return q
}

func basins(name string, d int, rng *rand.Rand) (Problem, error) {
	type peak struct {
		x             []float64
		height, width float64
	}
	peaks := make([]peak, 8)
	for i := range peaks {
		p := peak{x: place(d, 0.08, rng)}
		switch i {
		case 0:
			p.height, p.width = 1, 0.1
		case 1:
			p.height, p.width = 0.75, 0.32
		default:
			p.height, p.width = 0.35+0.4*rng.Float64(), 0.1+0.15*rng.Float64()
		}
		p.width *= math.Sqrt(float64(d) / 3)
		peaks[i] = p
	}
	value := func(x []float64) float64 {
		sum := 0.0
		for _, p := range peaks {
			sum -= p.height * math.Exp(-apart(x, p.x)/(2*p.width*p.width))
		}
		return sum
	}
	best := math.Inf(1)
	for _, p := range peaks {
		best = min(best, descend(value, p.x))
	}
	return unitBox(name, d, value, best)
}

// descend returns the least value that a pattern search in the unit cube finds from x.
func descend(value func(x []float64) float64, x []float64) float64 {
	x = slices.Clone(x)
	least := value(x)
	for step := 0.05; step > 1e-10; {
		moved := false
		for c, v := range x {
			for _, to := range []float64{v - step, v + step} {
				x[c] = min(max(to, 0), 1)
				if y := value(x); y < least {
					least, v, moved = y, x[c], true
				} else {
					x[c] = v
				}
			}
		}
		if !moved {
			step /= 2
		}
	}
	return least
}

func branches(name string, rng *rand.Rand) (Problem, error) {
	a, b, c := place(4, 0.1, rng), place(3, 0.1, rng), place(3, 0.1, rng)
	return newFormula(name, 0, func(at space.Config) float64 {
		s := []float64{number(at, "s0"), number(at, "s1")}
		switch word(at, "kind") {
		case "a":
			return 1.2 * -math.Expm1(-apart(append(s, number(at, "a0"), number(at, "a1")), a)/0.18)
		case "b":
			return 0.25 + 0.6*apart(s, b[:2]) + 0.5*apart([]float64{number(at, "b0")}, b[2:])
		default:
			return 0.4 + 0.5*apart(s, c[:2]) + 0.1*(1+math.Cos(14*(number(at, "c0")-c[2])))
		}
	},
		space.NewCategorical("kind", texts("a", "b", "c")...),
		space.NewFloat("s0", 0, 1), space.NewFloat("s1", 0, 1),
		space.NewFloat("a0", 0, 1).Given("kind", space.String("a")), space.NewFloat("a1", 0, 1).Given("kind", space.String("a")),
		space.NewFloat("b0", 0, 1).Given("kind", space.String("b")), space.NewFloat("c0", 0, 1).Given("kind", space.String("c")),
	)
}

// contaminated is a function whose measurements are sometimes useless.
type contaminated struct {
	*formula
	share, value float64 // of these measurements
}

// Evaluate implements [Problem].
func (p *contaminated) Evaluate(c space.Config, rng *rand.Rand) (float64, bool) {
	if rng.Float64() < p.share {
		return p.value, true
	}
	return p.True(c), true
}

func outliers(name string, rng *rand.Rand) (Problem, error) {
	const d = 4
	at := place(d, 0.2, rng)
	bowl, err := unitBox(name, d, func(x []float64) float64 { return apart(x, at) }, 0)
	return &contaminated{bowl, 0.05, 1e30}, err
}

func rough(name string, rng *rand.Rand) (Problem, error) {
	const levels, d = 8, 4
	at := place(d, 0.2, rng)
	effects := make([]float64, 1<<(3*d))
	for i := range effects {
		effects[i] = 0.15 * rng.NormFloat64()
	}
	value := func(cell int) float64 {
		v, k := effects[cell], cell
		for c := range d {
			x := float64(k%levels)/(levels-1) - at[c]
			v, k = v+x*x, k/levels
		}
		return v
	}
	best := math.Inf(1)
	for cell := range effects {
		best = min(best, value(cell))
	}
	names := []string{"p0", "p1", "p2", "p3"}
	var parameters []space.Parameter
	for _, n := range names {
		parameters = append(parameters, space.NewInt(n, 0, levels-1))
	}
	return newFormula(name, best, func(c space.Config) float64 {
		cell, base := 0, 1
		for _, n := range names {
			cell, base = cell+base*int(number(c, n)), base*levels
		}
		return value(cell)
	}, parameters...)
}

// failing is a bowl around a random point of the unit cube. It fails where the function says so.
func failing(name string, d int, rng *rand.Rand, where func(x, at []float64) bool) (Problem, error) {
	at := place(d, 0.2, rng)
	return unitBox(name, d, func(x []float64) float64 {
		if where(x, at) {
			return math.Inf(1)
		}
		return apart(x, at)
	}, 0)
}

func cliff(name string, rng *rand.Rand) (Problem, error) {
	return failing(name, 3, rng, func(x, at []float64) bool {
		return x[0] > at[0]+1e-3 // half of the directions from the optimum
	})
}

func wedge(name string, rng *rand.Rand) (Problem, error) {
	return failing(name, 5, rng, func(x, at []float64) bool {
		return x[0]-at[0] > 1e-3+0.5*(x[1]-at[1]) || x[1]-at[1] > 1e-3+0.5*(x[2]-at[2])
	})
}

func pocket(name string, rng *rand.Rand) (Problem, error) {
	const d, radius = 4, 0.35
	at := place(d, 0.3, rng)
	middle, norm := make([]float64, d), 0.0
	for c := range middle {
		middle[c] = rng.NormFloat64()
		norm += middle[c] * middle[c]
	}
	for c := range middle {
		middle[c] = at[c] + (radius+1e-3)*middle[c]/math.Sqrt(norm)
	}
	return unitBox(name, d, func(x []float64) float64 {
		if apart(x, middle) < radius*radius {
			return math.Inf(1)
		}
		return apart(x, at)
	}, 0)
}

// mixedCliff resembles a network that runs out of memory with one optimiser.
func mixedCliff(name string, rng *rand.Rand) (Problem, error) {
	at := place(3, 0.2, rng)
	return newFormula(name, 0, func(c space.Config) float64 {
		x := []float64{number(c, "x"), number(c, "y"), number(c, "z")}
		extra := map[string]float64{"a": 0, "b": 0.05, "c": 0.2}[word(c, "kind")]
		if word(c, "kind") == "a" && x[0]+x[1] > at[0]+at[1]+1e-3 {
			return math.Inf(1)
		}
		return extra + apart(x, at)
	}, space.NewCategorical("kind", texts("a", "b", "c")...), space.NewFloat("x", 0, 1), space.NewFloat("y", 0, 1), space.NewFloat("z", 0, 1))
}

// fails reports whether a point of the unit cube is among a share of them that is spread
// like random numbers.
func fails(x []float64, share float64) bool {
	h := uint64(0)
	for _, v := range x {
		h = stream.Derive(h, "fails", math.Float64bits(v))
	}
	return float64(h>>11)/(1<<53) < share
}

func flaky(name string, rng *rand.Rand) (Problem, error) {
	return failing(name, 4, rng, func(x, at []float64) bool { return fails(x, 0.25) && apart(x, at) > 0 })
}

func valley(name string, rng *rand.Rand) (Problem, error) {
	const d = 3
	at := place(d, 0.2, rng)
	return unitBox(name, d, func(x []float64) float64 {
		if fails(x, 0.25) && apart(x, at) > 0 {
			return math.Inf(1)
		}
		u, v, w := x[0]-at[0], x[1]-at[1], x[2]-at[2]
		return math.Pow(u+v+2*w*w, 2) + 0.1*v*v + 0.01*w*w
	}, 0)
}
