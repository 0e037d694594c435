//go:build linux

// Peer compares the numeric ground with gonum and with NumPy over OpenBLAS, in
// one run on one core.
//
//	go run ./internal/simd/peer [-python /usr/bin/python3] [-rounds 7] [-gonum] [-match regexp]
//
// Each round takes every case once on each side, one after the other, so that a
// change of the machine's speed meets all sides alike. Times are CPU times of
// the one thread (for Python and gonum: of the process), the figures medians
// over the rounds with the quartiles, and a ratio is the median of the ratios of
// the rounds. Python needs numpy and scipy; without them that column is empty.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"log"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/bkbtuner/bkb/internal/simd"
)

func main() {
	python := flag.String("python", "/usr/bin/python3", "Python with numpy and scipy; empty for none")
	rounds := flag.Int("rounds", 7, "how often each case is taken")
	match := flag.String("match", "", "only the cases that match")
	withGonum := flag.Bool("gonum", false, "time gonum too (slow)")
	dir := flag.String("dir", "internal/simd/peer", "where peer.py is")
	flag.Parse()
	log.SetFlags(0)
	runtime.LockOSThread()
	var peer *peer
	if *python != "" {
		var err error
		if peer, err = startPeer(*python, filepath.Join(*dir, "peer.py")); err != nil {
			log.Print("no Python: ", err)
		}
	}
	var cases []*measured
	for _, name := range names {
		if ok, err := regexp.MatchString(*match, name); err != nil {
			log.Fatal(err)
		} else if ok {
			cases = append(cases, &measured{name: name, c: build(name)})
		}
	}
	var peak32, peak64 []float64
	for round := range *rounds + 1 {
		p32, p64 := peaks()
		peak32, peak64 = append(peak32, p32), append(peak64, p64)
		for _, m := range cases {
			m.take(peer, *withGonum, round == 0)
		}
	}
	_, peak32, _ = quartiles(peak32)
	_, peak64, _ = quartiles(peak64)
	report(cases, peak32[0], peak64[0])
}

// measured is one case with its times in seconds.
type measured struct {
	name               string
	c                  comparison
	ours, numpy, gonum []float64
	numpyRatio         []float64
	gonumRatio         []float64
}

// take runs the case once on each side; the first round only warms up.
func (m *measured) take(peer *peer, withGonum, warm bool) {
	runtime.GC()
	m.c.ours() // once more, untimed, as on the other side: what is short starts with warm caches
	start := clock(unix.CLOCK_THREAD_CPUTIME_ID)
	m.c.ours()
	t := clock(unix.CLOCK_THREAD_CPUTIME_ID) - start
	if !warm {
		m.ours = append(m.ours, t)
	}
	if p, ok := peer.time(m.name); ok && !warm {
		m.numpy, m.numpyRatio = append(m.numpy, p), append(m.numpyRatio, p/t)
	}
	if withGonum && m.c.gonum != nil && (!warm || len(m.gonum) > 0) && len(m.gonum) < 3 {
		start := clock(unix.CLOCK_PROCESS_CPUTIME_ID)
		m.c.gonum()
		g := clock(unix.CLOCK_PROCESS_CPUTIME_ID) - start
		m.gonum, m.gonumRatio = append(m.gonum, g), append(m.gonumRatio, g/t)
	}
}

func clock(which int32) float64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(which, &ts); err != nil {
		log.Fatal(err)
	}
	return float64(ts.Sec) + 1e-9*float64(ts.Nsec)
}

// peaks measures what multiply-adds alone reach, in flops a second; 0 without
// assembly.
func peaks() (p32, p64 float64) {
	const n = 200000
	for range 3 {
		start := clock(unix.CLOCK_THREAD_CPUTIME_ID)
		simd.Peak[float32](n)
		middle := clock(unix.CLOCK_THREAD_CPUTIME_ID)
		simd.Peak[float64](n)
		end := clock(unix.CLOCK_THREAD_CPUTIME_ID)
		p32, p64 = max(p32, n*12*16/(middle-start)), max(p64, n*12*8/(end-middle))
	}
	return p32, p64
}

// quartiles returns the lower quartile, the median and the upper quartile.
func quartiles(x []float64) (low, mid, high []float64) {
	if len(x) == 0 {
		return nil, nil, nil
	}
	x = slices.Clone(x)
	slices.Sort(x)
	n := len(x)
	return x[n/4 : n/4+1], x[n/2 : n/2+1], x[(3*n)/4 : (3*n)/4+1]
}

func report(cases []*measured, peak32, peak64 float64) {
	fmt.Printf("path %s, FMA peak of this run: float32 %.1f, float64 %.1f Gflop/s\n\n", simd.For[float64]().Path, peak32/1e9, peak64/1e9)
	fmt.Println("| case | ms [quartiles] | Gflop/s | of peak | NumPy ms | NumPy / ours [quartiles] | gonum ms | gonum / ours |")
	fmt.Println("|---|---|---|---|---|---|---|---|")
	for _, m := range cases {
		low, mid, high := quartiles(m.ours)
		fmt.Printf("| %s | %.3g [%.3g %.3g] |", m.name, 1e3*mid[0], 1e3*low[0], 1e3*high[0])
		if m.c.flops > 0 {
			peak := peak64
			if strings.Fields(m.name)[1] == "32" {
				peak = peak32
			}
			fmt.Printf(" %.1f | %.0f %% |", m.c.flops/mid[0]/1e9, 100*m.c.flops/mid[0]/peak)
		} else {
			fmt.Print(" | |")
		}
		ratio(m.numpy, m.numpyRatio)
		ratio(m.gonum, m.gonumRatio)
		fmt.Println()
	}
}

func ratio(times, ratios []float64) {
	if len(times) == 0 {
		fmt.Print(" | |")
		return
	}
	_, mid, _ := quartiles(times)
	low, r, high := quartiles(ratios)
	fmt.Printf(" %.3g | %.2f [%.2f %.2f] |", 1e3*mid[0], r[0], low[0], high[0])
}

// peer is the Python process.
type peer struct {
	in  io.Writer
	out *bufio.Scanner
}

func startPeer(python, script string) (*peer, error) {
	cmd := exec.Command(python, script)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &peer{in, bufio.NewScanner(out)}, cmd.Start()
}

// time has the case run once on the other side.
func (p *peer) time(name string) (seconds float64, ok bool) {
	if p == nil {
		return 0, false
	}
	if _, err := fmt.Fprintln(p.in, name); err != nil || !p.out.Scan() {
		return 0, false
	}
	seconds, err := strconv.ParseFloat(p.out.Text(), 64)
	return seconds, err == nil
}
