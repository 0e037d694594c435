package falkon_test

import (
	"context"
	"fmt"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/sketch"
)

func Example() {
	ctx := context.Background()
	train, _ := data.Generate[float64](data.SUSYLike{Seed: 1}, 0, 3000)
	test, _ := data.Generate[float64](data.SUSYLike{Seed: 1}, 3000, 1000)
	k, _ := kernel.NewGaussian(4)

	// FALKON-BLESS, stopped by the validation error.
	p := falkon.Params{Kernel: k, Lambda: 1e-5, SamplerLambda: 2e-3, Sampler: sketch.BLESS{}}
	m, err := p.Fit(ctx, train, learners.Options{Validation: test, Measure: learners.ClassError, Patience: 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	outputs := make([]float64, test.Len())
	if err := m.Predict(ctx, outputs, test); err != nil {
		fmt.Println(err)
		return
	}
	y, _ := learners.Targets(ctx, test)
	fmt.Println("class error below 0.2:", learners.ClassError(outputs, y, 1) < 0.2)
	// Output: class error below 0.2: true
}
