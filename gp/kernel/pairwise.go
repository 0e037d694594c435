package kernel

import (
	"fmt"
	"maps"
	"math"
	"reflect"
)

var _ Kernel = (*Pairwise[string])(nil)

// Pairwise is a kernel given by a plain function of two inputs of type X. It reads all
// rows with a method Row(i int) X. These are [List] of any type, Points[float64] with
// X = []float64, or your own.
type Pairwise[X any] struct {
	// Name identifies the kernel in a [Spec]. [New] passes it to its resolver.
	Name string
	// Func returns k(x, y). It must be symmetric, positive semi-definite ([CheckPSD] samples
	// that), safe for concurrent use, and must not keep or change its arguments.
	Func func(x, y X) float64
	// Sup is κ² = sup k(x, x), or 0 if unknown, which means +Inf.
	Sup float64
	// Params are the parameters for the Spec, if any.
	Params map[string]float64
}

// items are rows whose elements are X.
type items[X any] interface{ Row(i int) X }

// Eval returns Func(x_i, y_j).
func (k *Pairwise[X]) Eval(x Rows, i int, y Rows, j int) float64 {
	return k.Func(x.(items[X]).Row(i), y.(items[X]).Row(j))
}

// Diag returns Func(x_i, x_i).
func (k *Pairwise[X]) Diag(x Rows, i int) float64 { return k.Eval(x, i, x, i) }

// Bound returns Sup, or +Inf when that is 0.
func (k *Pairwise[X]) Bound() float64 {
	if k.Sup == 0 {
		return math.Inf(1)
	}
	return k.Sup
}

// Check accepts rows with a method Row(i int) X.
func (k *Pairwise[X]) Check(x Rows) error {
	if _, ok := x.(items[X]); !ok {
		return &TypeError{Kernel: k.Name, Got: fmt.Sprintf("%T", x), Want: fmt.Sprintf("rows of %v", reflect.TypeFor[X]())}
	}
	return nil
}

// Spec returns Name and Params.
func (k *Pairwise[X]) Spec() Spec { return Spec{Name: k.Name, Params: maps.Clone(k.Params)} }
