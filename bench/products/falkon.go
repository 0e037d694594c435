//go:build linux

package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
)

// problem is a regression in 18 dimensions, the same for both sides, with y = Σ_c sin(x_c +
// c) + noise of deviation 0.5.
type problem struct {
	n, test, m, t, threads int
	lambda, lengthScale    float64
}

const dim = 18

// compareFalkon fits the same problem with learners/falkon, in both precisions, and with
// the same algorithm in PyTorch (falkon.py). Each runs once, one after the other.
func compareFalkon(python, dir string, args []string) {
	var p problem
	var precisions string
	flags := flag.NewFlagSet("falkon", flag.ExitOnError)
	flags.IntVar(&p.n, "n", 1_000_000, "training rows")
	flags.IntVar(&p.test, "test", 20_000, "test rows")
	flags.IntVar(&p.m, "m", 4000, "centres")
	flags.IntVar(&p.t, "t", 20, "iterations")
	flags.IntVar(&p.threads, "threads", 2, "threads")
	flags.Float64Var(&p.lambda, "lambda", 1e-6, "λ per sample")
	flags.Float64Var(&p.lengthScale, "scale", 6, "length scale")
	flags.StringVar(&precisions, "precisions", "32,64", "ours")
	_ = flags.Parse(args) // exits on an error
	machine(os.Stdout)
	fmt.Printf("FALKON, n = %d, d = %d, M = %d, %d iterations, λ = %g, %d threads\n\n", p.n, dim, p.m, p.t, p.lambda, p.threads)
	x, y := p.draw()
	work, err := os.MkdirTemp("", "falkon")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(work)
	if err := errors.Join(save(work, "x", x), save(work, "y", y)); err != nil {
		log.Fatal(err)
	}
	fmt.Print("| side | s | CPU s | peak memory above the data, MiB | test RMSE |\n|---|---|---|---|---|\n")
	for _, name := range strings.Split(precisions, ",") {
		precision := kernel.Float64
		if name == "32" {
			precision = kernel.Float32
		}
		centers, err := p.ours(os.Stdout, precision, x, y)
		if err == nil {
			err = save(work, "c", centers)
		}
		if err != nil {
			log.Fatal(err)
		}
	}
	if python == "" {
		return
	}
	cmd := exec.Command(python, filepath.Join(dir, "falkon.py"), work, fmt.Sprint(dim), fmt.Sprint(p.n), fmt.Sprint(p.m), fmt.Sprint(p.t), fmt.Sprint(p.lambda), fmt.Sprint(p.lengthScale), fmt.Sprint(p.threads))
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		log.Print("no PyTorch: ", err)
	}
}

// draw makes training and test rows, in this order.
func (p problem) draw() (x []float32, y []float64) {
	rng := rand.New(rand.NewPCG(6, 6))
	rows := p.n + p.test
	x, y = make([]float32, rows*dim), make([]float64, rows)
	for i := range rows {
		s := 0.0
		for c := range dim {
			v := rng.NormFloat64()
			x[i*dim+c] = float32(v)
			s += math.Sin(v + float64(c))
		}
		y[i] = s + 0.5*rng.NormFloat64()
	}
	return x, y
}

func save(dir, name string, data any) error {
	f, err := os.Create(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	return errors.Join(binary.Write(f, binary.LittleEndian, data), f.Close())
}

// ours fits, prints one line of the table, and returns the centres.
func (p problem) ours(w io.Writer, precision kernel.Precision, x []float32, y []float64) ([]float32, error) {
	k, err := kernel.NewGaussian(p.lengthScale)
	if err != nil {
		return nil, err
	}
	train, err := data.NewMemory(kernel.NewPoints(p.n, dim, x[:p.n*dim]), y[:p.n], 1)
	if err != nil {
		return nil, err
	}
	before, err := resetPeak()
	if err != nil {
		return nil, err
	}
	begin, cpu := clock(wall), clock(processor)
	params := falkon.Params{Kernel: k, Lambda: p.lambda, Centers: p.m, Iterations: p.t, Tolerance: 1e-300, Precision: precision}
	model, err := params.Fit(context.Background(), train, learners.Options{Seed: 1, Workers: p.threads})
	if err != nil {
		return nil, err
	}
	seconds, processorSeconds := clock(wall)-begin, clock(processor)-cpu
	peak, err := memory("VmHWM")
	if err != nil {
		return nil, err
	}
	out := make([]float64, p.test)
	if err := model.Predict(context.Background(), out, kernel.FromRows(kernel.NewPoints(p.test, dim, x[p.n*dim:]))); err != nil {
		return nil, err
	}
	square := 0.0
	for i, v := range out {
		square += (v - y[p.n+i]) * (v - y[p.n+i])
	}
	fmt.Fprintf(w, "| learners/falkon, %v products | %.1f | %.1f | %d | %.5f |\n", precision, seconds, processorSeconds, (peak-before)>>10, math.Sqrt(square/float64(p.test)))
	centers := model.(*learners.Expansion).Centers()
	return centers.(*kernel.Points[float32]).Data(), nil
}

// resetPeak sets the peak of resident memory to the present resident memory, and returns
// that in KiB.
func resetPeak() (int, error) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		return 0, err
	}
	return memory("VmRSS")
}

// memory reads a number of KiB from /proc/self/status.
func memory(field string) (int, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for _, line := range strings.Split(string(status), "\n") {
		if rest, ok := strings.CutPrefix(line, field+":"); ok {
			var kib int
			_, err := fmt.Sscan(rest, &kib)
			return kib, err
		}
	}
	return 0, fmt.Errorf("no %s in /proc/self/status", field)
}
