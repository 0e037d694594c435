//go:build linux

package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
)

// plain is a kernel without panels. It uses direct differences, package math and plain
// loops, always in float64.
type plain struct{ *kernel.Base }

// accuracy measures the effect of products in float32, and of expanded distances, on
// FALKON. It compares predictions of fits with few iterations, in either precision and in
// plain loops, with those of many iterations in plain loops. It does so for a smooth target
// in many coordinates and for an ill-conditioned problem in few.
func accuracy(w io.Writer, args []string) {
	flags := flag.NewFlagSet("accuracy", flag.ExitOnError)
	n := flags.Int("n", 10_000, "training rows")
	m := flags.Int("m", 500, "centres")
	many := flags.Int("reference", 200, "iterations of the reference")
	_ = flags.Parse(args) // exits on an error
	fmt.Fprintf(w, "FALKON, n = %d, M = %d; ‖f − f_ref‖/‖f_ref‖ on test rows, f_ref of %d iterations in plain float64 with direct differences\n\n", *n, *m, *many)
	fmt.Fprint(w, "| problem | λ | iterations | plain | float64 | float32 | RMSE plain | RMSE float64 | RMSE float32 |\n|---|---|---|---|---|---|---|---|---|\n")
	for _, p := range []struct {
		d     int
		scale float64
	}{{18, 4}, {90, 8}, {6, 0.5}} {
		train, test, y := draw(*n, 2000, p.d)
		gaussian, err := kernel.NewGaussian(p.scale)
		if err != nil {
			log.Fatal(err)
		}
		fit := func(k kernel.Kernel, lambda float64, t int, precision kernel.Precision) []float64 {
			params := falkon.Params{Kernel: k, Lambda: lambda, Centers: *m, Iterations: t, Tolerance: 1e-300, Precision: precision}
			model, err := params.Fit(context.Background(), train, learners.Options{Seed: 1})
			if err != nil {
				log.Fatal(err)
			}
			out := make([]float64, test.Len())
			if err := model.Predict(context.Background(), out, kernel.FromRows(test)); err != nil {
				log.Fatal(err)
			}
			return out
		}
		for _, lambda := range []float64{1e-4, 1e-6, 1e-7, 1e-8, 1e-9} {
			reference := fit(plain{gaussian}, lambda, *many, kernel.Float64)
			size := rms(reference, make([]float64, len(reference)))
			for _, t := range []int{20, 40} {
				slow := fit(plain{gaussian}, lambda, t, kernel.Float64)
				f64, f32 := fit(gaussian, lambda, t, kernel.Float64), fit(gaussian, lambda, t, kernel.Float32)
				fmt.Fprintf(w, "| d = %d, ℓ = %g | %.0e | %d | %.1e | %.1e | %.1e | %.6f | %.6f | %.6f |\n", p.d, p.scale, lambda, t,
					rms(slow, reference)/size, rms(f64, reference)/size, rms(f32, reference)/size, rms(slow, y), rms(f64, y), rms(f32, y))
			}
		}
	}
}

// draw makes rows, uniform in the unit cube for d = 6 and normal otherwise, with y = Σ_c
// sin(x_c + c)/√d + noise of deviation 0.05. The test rows have no noise.
func draw(n, tests, d int) (train *data.Memory, test *kernel.Points[float32], want []float64) {
	rng := rand.New(rand.NewPCG(7, uint64(d)))
	x := kernel.NewPoints[float32](n+tests, d, nil)
	y := make([]float64, n+tests)
	for i := range y {
		row := x.Row(i)
		for c := range row {
			v := rng.NormFloat64()
			if d == 6 {
				v = rng.Float64()
			}
			row[c] = float32(v)
			y[i] += math.Sin(v+float64(c)) / math.Sqrt(float64(d))
		}
		if i < n {
			y[i] += 0.05 * rng.NormFloat64()
		}
	}
	train, err := data.NewMemory(x.Slice(0, n), y[:n], 1)
	if err != nil {
		log.Fatal(err)
	}
	return train, x.Slice(n, n+tests).(*kernel.Points[float32]), y[n:]
}

// rms returns the root of the mean squared difference.
func rms(a, b []float64) float64 {
	s := 0.0
	for i, v := range a {
		s += (v - b[i]) * (v - b[i])
	}
	return math.Sqrt(s / float64(len(a)))
}
