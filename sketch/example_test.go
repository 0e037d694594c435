package sketch_test

import (
	"context"
	"fmt"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/sketch"
)

// With this wide kernel, a few of a thousand numbers represent all.
func ExampleBLESS() {
	rng := rand.New(rand.NewPCG(1, 2))
	x := kernel.NewPoints[float64](1000, 1, nil)
	for i := range 1000 {
		x.Row(i)[0] = rng.Float64()
	}
	k, err := kernel.NewGaussian(0.2)
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := sketch.BLESS{}.Sample(context.Background(), k, kernel.FromRows(x), 1e-3, rand.New(rand.NewPCG(7, 0)))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d points of %d, along %d levels from λ = %.1g\n", d.Len(), d.N, len(d.Path), d.Path[0].Lambda)
	// Output:
	// 36 points of 1000, along 10 levels from λ = 0.5
}

func ExampleNewOrthogonal() {
	k, err := kernel.NewGaussian(2)
	if err != nil {
		fmt.Println(err)
		return
	}
	phi, err := sketch.NewOrthogonal(k, 3, 2000, 1)
	if err != nil {
		fmt.Println(err)
		return
	}
	x := kernel.NewPoints(2, 3, []float64{0, 1, 2, 1, 1, 1})
	f := make([]float64, x.Len()*phi.Features())
	if err := phi.Apply(f, x); err != nil {
		fmt.Println(err)
		return
	}
	dot := 0.0
	for j, a := range f[:2000] {
		dot += a * f[2000+j]
	}
	fmt.Printf("φ(x)ᵀφ(y) = %.1f, k(x, y) = %.1f\n", dot, k.Eval(x, 0, x, 1))
	// Output: φ(x)ᵀφ(y) = 0.8, k(x, y) = 0.8
}
