package gp_test

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

func ExampleExact() {
	k, err := kernel.NewGaussian(0.3)
	if err != nil {
		log.Fatal(err)
	}
	x := kernel.NewPoints(3, 1, []float64{0, 0.5, 1})
	g, err := gp.NewExact(k, gp.Data{X: x, Y: []float64{1, 0, 1}}, gp.Options{NoiseVariance: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	mean, variance, err := g.Predict(kernel.NewPoints(2, 1, []float64{0.5, 5}))
	if err != nil {
		log.Fatal(err)
	}
	for i := range mean {
		fmt.Printf("%.2f ± %.2f\n", mean[i], math.Sqrt(variance[i]))
	}
	// Output:
	// 0.01 ± 0.10
	// 0.00 ± 1.00
}

// A sparse posterior keeps its arms up to date, as a bandit needs it.
func ExampleSparse() {
	k, err := kernel.NewGaussian(0.3)
	if err != nil {
		log.Fatal(err)
	}
	arms := kernel.NewPoints(5, 1, []float64{0, 0.25, 0.5, 0.75, 1})
	s, err := gp.NewSparse(k, arms.Select([]int{2}), gp.Data{}, gp.SparseOptions{NoiseVariance: 0.01})
	if err != nil {
		log.Fatal(err)
	}
	if err := s.SetArms(arms, false); err != nil {
		log.Fatal(err)
	}
	if err := s.ObserveArm(2, 1); err != nil { // a target
		log.Fatal(err)
	}
	if err := s.PullArm(4); err != nil { // no target yet, but the variance shrinks
		log.Fatal(err)
	}
	// Choose inducing points for the pulls since.
	if err := s.Resparsify(s.Points()); err != nil {
		log.Fatal(err)
	}
	for a, v := range s.ArmVariances() {
		fmt.Printf("arm %d: %.2f ± %.2f\n", a, s.ArmMeans()[a], math.Sqrt(v))
	}
	// Output:
	// arm 0: 0.25 ± 0.97
	// arm 1: 0.70 ± 0.70
	// arm 2: 0.99 ± 0.10
	// arm 3: 0.70 ± 0.45
	// arm 4: 0.25 ± 0.10
}

func ExampleFit() {
	k, err := kernel.NewMatern52(1)
	if err != nil {
		log.Fatal(err)
	}
	x, y := make([]float64, 40), make([]float64, 40)
	for i := range x {
		x[i] = float64(i) / 40
		y[i] = 300 + 20*math.Sin(12*x[i])
	}
	data := gp.Data{X: kernel.NewPoints(40, 1, x), Y: y}
	r, err := gp.Fit(context.Background(), k, data, gp.DimensionScaled(1))
	if err != nil {
		log.Fatal(err)
	}
	// The fit is of (y − Shift)/Scale.
	fitted, err := kernel.NewScaled(r.Scale*r.Scale, r.Kernel)
	if err != nil {
		log.Fatal(err)
	}
	g, err := gp.NewExact(fitted, data, gp.Options{NoiseVariance: r.NoiseVariance * r.Scale * r.Scale, Mean: r.Shift})
	if err != nil {
		log.Fatal(err)
	}
	at, _, err := g.Predict(kernel.NewPoints(1, 1, []float64{0.13}))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%.0f\n", at[0])
	// Output: 320
}
