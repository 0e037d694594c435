// Program falkon fits kernel ridge regression to slices of numbers with FALKON.
package main

import (
	"context"
	"fmt"
	"log"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
)

func main() {
	x, y := make([][]float64, 1000), make([]float64, 1000)
	for i := range x {
		x[i] = []float64{float64(i) / 1000}
		y[i] = math.Sin(10 * x[i][0])
	}
	train := must(data.FromSlices(x, y))
	params := falkon.Params{Kernel: must(kernel.NewGaussian(0.1)), Lambda: 1e-8, Centers: 50}
	model := must(params.Fit(context.Background(), train, learners.Options{}))
	outputs := make([]float64, train.Len())
	if err := model.Predict(context.Background(), outputs, train); err != nil {
		log.Fatal(err)
	}
	fmt.Printf("RMSE below 0.001: %t\n", learners.RMSE(outputs, y, 1) < 0.001)
}

func must[T any](v T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return v
}
