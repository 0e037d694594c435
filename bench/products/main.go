//go:build linux

// Products compares the numeric kernels with NumPy, SciPy, scikit-learn, PyTorch and gonum,
// case by case in one run. It reports which of the ratios that the project requires hold.
// Gates must hold, and aims go further.
//
//	make bench-products
//	go -C bench run ./products [-python file] [-rounds 7] [-match regexp] [-threads 1,2] [-gonum]
//
// Each round takes every case once on each side, one after the other, so that a change of
// the machine's speed affects all sides alike. On one thread times are CPU times, of the
// thread for Go and of the process for the others. On two threads they are wall times.
// Figures are medians over the rounds with the quartiles, and a ratio is the median of the
// ratios of the rounds. gonum, and a peer that needs more than 0.7 s, runs only three
// times.
//
// Cases that Python does not support, or all if there is no Python, are left out.
//
//	go -C bench run ./products falkon
//
// compares FALKON end to end with the same algorithm in PyTorch. With accuracy in its place
// it measures the effect of products in float32 on FALKON, and with mnist the error that
// FALKON reaches there.
//
// products/learners.py compares tuner auto with tuned learners of Python.
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/internal/simd"
)

func main() {
	binary := flag.String("python", "/usr/bin/python3", "Python with numpy, scipy, scikit-learn and torch, as far as installed; empty for none")
	rounds := flag.Int("rounds", 7, "how often each case is taken")
	match := flag.String("match", "", "only the cases that match")
	threads := flag.String("threads", "1,2", "numbers of threads")
	withGonum := flag.Bool("gonum", true, "time gonum too (slow)")
	dir := flag.String("dir", "products", "where the Python scripts are")
	flag.Parse()
	log.SetFlags(0)
	if err := simd.Check(); err != nil {
		log.Fatal(err)
	}
	pattern, err := regexp.Compile(*match)
	if err != nil {
		log.Fatal(err)
	}
	counts, err := parseCounts(*threads)
	if err != nil {
		log.Fatal(err)
	}
	if *rounds < 1 {
		log.Fatalf("-rounds is %d, want at least 1", *rounds)
	}
	switch flag.Arg(0) {
	case "":
	case "falkon":
		compareFalkon(*binary, *dir, flag.Args()[1:])
		return
	case "accuracy":
		accuracy(os.Stdout, flag.Args()[1:])
		return
	case "mnist":
		mnist(flag.Args()[1:])
		return
	default:
		log.Fatalf("there is no comparison %q; use falkon, accuracy, mnist, or none for products", flag.Arg(0))
	}
	machine(os.Stdout)
	for _, n := range counts {
		r := run{threads: n, gonum: *withGonum && n == 1}
		if *binary != "" {
			if r.python, err = startPython(*binary, filepath.Join(*dir, "peer.py"), n); err != nil {
				log.Print("no Python: ", err)
			}
		}
		for _, t := range tasks {
			if pattern.MatchString(t.name) && (n == 1 || t.pair) {
				r.cases = append(r.cases, newMeasured(t, build(t.name, n)))
			}
		}
		runtime.LockOSThread()
		r.measure(*rounds)
		r.report(os.Stdout)
		r.python.close()
	}
}

// parseCounts reads numbers separated by commas.
func parseCounts(text string) (counts []int, err error) {
	for _, s := range strings.Split(text, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-threads is %q, want numbers ≥ 1 separated by commas", text)
		}
		counts = append(counts, n)
	}
	return counts, nil
}

// machine describes this machine.
func machine(w io.Writer) {
	model := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for _, line := range strings.Split(string(info), "\n") {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				model = strings.TrimSpace(v)
				break
			}
		}
	}
	fmt.Fprintf(w, "%s, %d processors, %s %s/%s\n", model, runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
