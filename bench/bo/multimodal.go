package bo

import (
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/bench/bbob"
	"github.com/bkbtuner/bkb/internal/problems"
	"github.com/bkbtuner/bkb/internal/stream"
)

// multimodal has functions with many local optima, where a proposer can stay in the first
// good one. They are Ackley's function on a wide box, Hartmann's in six dimensions, Schwefel's in
// two, and BBOB's f15 to f24 in 3 and 5 dimensions. The end of a name is the instance. Settings are
// chosen on instance 1, so the others are fair.
var multimodal = Suite{
	Name: "multimodal", Title: "Many local optima", Source: "packages internal/problems and internal/problems/bbob", Log: true,
	Problems: multimodalProblems(),
}

// multimodalInstances is the number of instances of each function that has instances.
const multimodalInstances = 3

func multimodalProblems() []Listed {
	out := []Listed{
		maximised("multimodal/hartmann6", Full, problems.Hartmann6{}),
		{"multimodal/schwefel2", Full, schwefel},
	}
	for i := 1; i <= multimodalInstances; i++ {
		tier := Full
		if i == 2 {
			tier = Standard
		}
		name := fmt.Sprintf("multimodal/ackley5-i%d", i)
		out = append(out, Listed{name, tier, func(string) (Problem, error) { return wideAckley(name, 5, i) }})
		for _, d := range []int{3, 5} {
			for f := 15; f <= bbob.Functions; f++ {
				tier := tier
				if f%3 != 0 {
					tier = Full
				}
				out = append(out, bbobInstance("multimodal", tier, f, d, i))
			}
		}
	}
	return out
}

// schwefel is Schwefel's function in two dimensions. Its best minima are far from each other.
func schwefel(string) (Problem, error) {
	return newBox("multimodal/schwefel2", []float64{-500, -500}, []float64{500, 500}, func(x []float64) float64 {
		v := 2 * 418.9828872724339
		for _, u := range x {
			v -= u * math.Sin(math.Sqrt(math.Abs(u)))
		}
		return max(v, 0)
	}, 0)
}

// wideAckley is Ackley's function on [−20, 32] in each dimension, with its optimum 0
// moved by up to 10 from the origin.
func wideAckley(name string, d, instance int) (Problem, error) {
	shift, rng := make([]float64, d), stream.New(stream.Derive(uint64(instance), "bench bo ackley", uint64(d)))
	for i := range shift {
		shift[i] = 20*rng.Float64() - 10
	}
	return newBox(name, slices.Repeat([]float64{-20}, d), slices.Repeat([]float64{32}, d), func(x []float64) float64 {
		square, cosine := 0.0, 0.0
		for i, v := range x {
			v -= shift[i]
			square, cosine = square+v*v/float64(d), cosine+math.Cos(2*math.Pi*v)/float64(d)
		}
		return max(20-20*math.Exp(-0.2*math.Sqrt(square))+math.E-math.Exp(cosine), 0)
	}, 0)
}
