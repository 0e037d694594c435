//go:build linux

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
)

// mnist fits all 60,000 training digits, one output for each class, and counts the errors
// on the 10,000 test digits.
func mnist(args []string) {
	flags := flag.NewFlagSet("mnist", flag.ExitOnError)
	m := flags.Int("m", 12_000, "centres")
	t := flags.Int("t", 20, "iterations")
	lambda := flags.Float64("lambda", 1e-7, "λ per sample")
	name := flags.String("kernel", "gaussian", "a kernel of one length scale: gaussian, matern52, laplace, …")
	scale := flags.Float64("scale", 5, "length scale, of pixels from 0 to 1")
	workers := flags.Int("threads", 0, "threads, 0 for all")
	dir := flags.String("data", dataDir(), "folder of the four files")
	_ = flags.Parse(args) // exits on an error
	x, labels, err := digits(*dir, "train")
	if err != nil {
		log.Fatal(err)
	}
	test, want, err := digits(*dir, "t10k")
	if err != nil {
		log.Fatal(err)
	}
	y := make([]float64, 10*len(labels))
	for i := range y {
		y[i] = -1
	}
	for i, c := range labels {
		y[10*i+int(c)] = 1
	}
	train, err := data.NewMemory(x, y, 10)
	if err != nil {
		log.Fatal(err)
	}
	k, err := kernel.New(kernel.Spec{Name: *name, LengthScales: []float64{*scale}}, nil)
	if err != nil {
		log.Fatal(err)
	}
	before, err := resetPeak()
	if err != nil {
		log.Fatal(err)
	}
	begin, cpu := clock(wall), clock(processor)
	params := falkon.Params{Kernel: k, Lambda: *lambda, Centers: *m, Iterations: *t, Precision: kernel.Float32}
	model, err := params.Fit(context.Background(), train, learners.Options{Seed: 1, Workers: *workers})
	if err != nil {
		log.Fatal(err)
	}
	seconds, cpu := clock(wall)-begin, clock(processor)-cpu
	peak, err := memory("VmHWM")
	if err != nil {
		log.Fatal(err)
	}
	out := make([]float64, 10*test.Len())
	if err := model.Predict(context.Background(), out, kernel.FromRows(test)); err != nil {
		log.Fatal(err)
	}
	wrong := 0
	for i, c := range data.Classes(out, 10) {
		if c != int(want[i]) {
			wrong++
		}
	}
	machine(os.Stdout)
	fmt.Printf("MNIST, %s kernel, n = %d, M = %d, %d iterations, λ = %g, ℓ = %g: %.2f %% errors on %d; %.1f s, %.1f s of processors, %d MiB above the data\n",
		*name, x.Len(), *m, *t, *lambda, *scale, 100*float64(wrong)/float64(test.Len()), test.Len(), seconds, cpu, (peak-before)>>10)
}

// dataDir returns the directory of the data sets, BKB_DATA or shared/data beside the project.
func dataDir() string {
	root := os.Getenv("BKB_DATA")
	if root == "" {
		root = filepath.Join("..", "..", "shared", "data")
	}
	return filepath.Join(root, "mnist")
}

// digits reads images, with pixels from 0 to 1, and labels.
func digits(dir, part string) (*kernel.Points[float32], []byte, error) {
	pixels, images, err1 := idx(filepath.Join(dir, part+"-images-idx3-ubyte.gz"), 3)
	labels, n, err2 := idx(filepath.Join(dir, part+"-labels-idx1-ubyte.gz"), 1)
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, err
	}
	if n != images {
		return nil, nil, fmt.Errorf("%s: %d images and %d labels", part, images, n)
	}
	x := kernel.NewPoints[float32](n, len(pixels)/n, nil)
	for i, v := range pixels {
		x.Data()[i] = float32(v) / 255
	}
	return x, labels, nil
}

// idx reads the items, and their number, from a file of bytes in the format IDX. The file
// has 0, 0, 8 for bytes, and the number of axes. Then come the lengths of the axes as
// big-endian numbers of 32 bits, of which the first is the number of items, and then the
// bytes.
func idx(file string, axes int) (data []byte, items int, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", file, err)
	}
	all, err := io.ReadAll(z)
	if err != nil {
		return nil, 0, fmt.Errorf("%s: %w", file, err)
	}
	header := 4 + 4*axes
	if len(all) < header || !bytes.Equal(all[:4], []byte{0, 0, 8, byte(axes)}) {
		return nil, 0, fmt.Errorf("%s: not an IDX file of bytes with %d axes", file, axes)
	}
	want := uint64(1)
	for i := range axes {
		if want *= uint64(binary.BigEndian.Uint32(all[4+4*i:])); want > 1<<32 {
			break // more than any file has, and no later product overflows
		}
	}
	if want == 0 || want != uint64(len(all)-header) {
		return nil, 0, fmt.Errorf("%s: its header is of %d bytes, and %d follow", file, want, len(all)-header)
	}
	return all[header:], int(binary.BigEndian.Uint32(all[4:])), nil
}
