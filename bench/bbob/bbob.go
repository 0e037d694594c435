package bbob

import (
	"fmt"
	"slices"
)

const (
	// Functions is the number of functions, which are numbered from 1.
	Functions = 24
	// Bound is the limit of the box on either side of every coordinate.
	Bound = 5
	// MaxDim is the largest dimension of BBOB.
	MaxDim = 40
)

// Function is one of the functions in one dimension and instance.
type Function struct {
	number, dim, instance int
	optimum               []float64
	minimum               float64
	above                 func(x []float64) float64 // f − f^opt
}

// recipe makes a function from its dimension and seed. It returns f − f^opt, and the point
// where that is 0.
type recipe func(d int, seed int64) (above func(x []float64) float64, optimum []float64)

// recipes returns the recipes of f1 … f24.
func recipes() [Functions]recipe {
	return [Functions]recipe{
		sphere, ellipsoid, rastrigin, buecheRastrigin, linearSlope,
		attractiveSector, stepEllipsoid, rosenbrock, rotatedRosenbrock,
		rotatedEllipsoid, discus, bentCigar, sharpRidge, differentPowers,
		rotatedRastrigin, weierstrass, schaffers(10), schaffers(1000), griewankRosenbrock,
		schwefel, gallagher(101), gallagher(21), katsuura, lunacek,
	}
}

// Error reports an argument for which there is no function.
type Error struct {
	Field     string // function, dimension or instance
	Value     int
	Low, High int
}

func (e *Error) Error() string {
	return fmt.Sprintf("bbob: %s = %d, which is not in %d … %d", e.Field, e.Value, e.Low, e.High)
}

// New returns function 1 … 24 in 2 … 40 dimensions, instance 1 or more. The error is a
// [*Error].
func New(function, dim, instance int) (*Function, error) {
	for _, e := range []Error{
		{"function", function, 1, Functions},
		{"dimension", dim, 2, MaxDim},
		{"instance", instance, 1, 100_000},
	} {
		if e.Value < e.Low || e.Value > e.High {
			return nil, &e
		}
	}
	f := &Function{number: function, dim: dim, instance: instance, minimum: minimum(function, instance)}
	f.above, f.optimum = recipes()[function-1](dim, seedOf(function, instance))
	return f, nil
}

// String returns a name such as f08-d05-i1.
func (f *Function) String() string {
	return fmt.Sprintf("f%02d-d%02d-i%d", f.number, f.dim, f.instance)
}

// Dim returns the number of inputs.
func (f *Function) Dim() int { return f.dim }

// Value returns f(x), x of length Dim.
func (f *Function) Value(x []float64) float64 { return f.above(x) + f.minimum }

// Above returns f(x) − f^opt without the rounding of a difference.
func (f *Function) Above(x []float64) float64 { return f.above(x) }

// Minimum returns f^opt, the least value.
func (f *Function) Minimum() float64 { return f.minimum }

// Optimum returns a point where f is least.
func (f *Function) Optimum() []float64 { return slices.Clone(f.optimum) }
