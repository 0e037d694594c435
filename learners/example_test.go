package learners_test

import (
	"bytes"
	"context"
	"fmt"
	"log"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/nystrom"
)

func Example() {
	ctx := context.Background()
	train, err := data.Generate[float64](data.Friedman{Noise: 1, Seed: 1}, 0, 1000)
	if err != nil {
		log.Fatal(err)
	}
	test, err := data.Generate[float64](data.Friedman{Noise: 1, Seed: 1}, 1000, 500)
	if err != nil {
		log.Fatal(err)
	}
	k, err := kernel.NewGaussian(3)
	if err != nil {
		log.Fatal(err)
	}
	params := nystrom.Params{Kernel: k, Lambda: 1e-5, Centers: 400}
	model, err := params.Fit(ctx, train, learners.Options{Seed: 1})
	if err != nil {
		log.Fatal(err)
	}

	var file bytes.Buffer
	if err := (&learners.File{Algorithm: "nystrom", Model: model}).Write(&file); err != nil {
		log.Fatal(err)
	}
	loaded, err := learners.Read(&file, nil)
	if err != nil {
		log.Fatal(err)
	}

	f := make([]float64, test.Len())
	if err := loaded.Model.Predict(ctx, f, test); err != nil {
		log.Fatal(err)
	}
	y, err := data.Targets(ctx, test)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("R² %.2f\n", 1-(learners.Scoring{}).Measure("1-r2")(f, y, 1))
	// Output: R² 0.87
}
