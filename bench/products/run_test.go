//go:build linux

package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Quartiles are order statistics, independent of the order. The input stays unchanged.
func TestQuartiles(t *testing.T) {
	const seed = 3
	rng := rand.New(rand.NewPCG(seed, seed))
	for n := 1; n <= 40; n++ {
		x := make([]float64, n)
		for i := range x {
			x[i] = math.Round(4 * rng.NormFloat64())
		}
		before := slices.Clone(x)
		low, mid, high := quartiles(x)
		if !slices.Equal(x, before) {
			t.Fatalf("seed %d, n = %d: the input was sorted", seed, n)
		}
		for _, q := range []struct {
			v    float64
			rank int
		}{{low, n / 4}, {mid, n / 2}, {high, 3 * n / 4}} {
			below, upTo := 0, 0
			for _, v := range x {
				if v < q.v {
					below++
				}
				if v <= q.v {
					upTo++
				}
			}
			if below > q.rank || upTo <= q.rank {
				t.Errorf("seed %d, n = %d: %g has %d numbers below and %d up to it, and is to have the rank %d", seed, n, q.v, below, upTo, q.rank)
			}
		}
	}
}

// A bound holds if it is reached, fails below it and for NaN, and counts only if there is
// one.
func TestTally(t *testing.T) {
	var g tally
	for _, c := range []struct {
		value, bound, scale float64
		unit, want          string
	}{
		{1, 0, 1, "", ""},
		{2.2, 2.2, 1, "", "2.2 holds"},
		{math.Nextafter(2.2, 0), 2.2, 1, "", "2.2 **missed**"},
		{0.66, 0.65, 100, " %", "65 % holds"},
		{0.64, 0.65, 100, " %", "65 % **missed**"},
		{math.NaN(), 1, 1, "", "1 **missed**"},
		{math.Inf(1), 1, 1, "", "1 holds"},
	} {
		if got := g.judge(c.value, c.bound, c.scale, c.unit); got != c.want {
			t.Errorf("%g against %g: %q, want %q", c.value, c.bound, got, c.want)
		}
	}
	for _, c := range []struct {
		value float64
		want  string
	}{{60, "60 holds"}, {60.001, "60 **missed**"}, {math.NaN(), "60 **missed**"}} {
		if got := g.judgeMost(c.value, 60); got != c.want {
			t.Errorf("%g against at most 60: %q, want %q", c.value, got, c.want)
		}
	}
	g.leaveOut(0)
	g.leaveOut(1.5)
	if g != (tally{held: 4, all: 9, out: 1}) {
		t.Errorf("counted %+v", g)
	}
}

// cells returns the cells of the rows of a report's table, without its head.
func cells(t *testing.T, report string) (rows [][]string) {
	t.Helper()
	for line := range strings.Lines(report) {
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "| case") || strings.HasPrefix(line, "|---") {
			continue
		}
		parts := strings.Split(strings.TrimSpace(line), "|")
		if len(parts) != 13 {
			t.Errorf("a row has %d columns, want 11: %s", len(parts)-2, line)
		}
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		rows = append(rows, parts[1:len(parts)-1])
	}
	return rows
}

// The report has the medians, quartiles, rates and bounds that follow from the times, for
// one thread and for two. It counts the bounds that it could not judge.
func TestReport(t *testing.T) {
	one := newMeasured(task{
		name: "gemm 64 10 20 30", gate: 0.5, aim: 0.9, most: 3e-3,
		wanted: []wanted{numpy(2, 5, 4), gonum(3, 3), torch(1, 1)},
	}, comparison{flops: 4e6})
	one.ours = []float64{4e-3, 1e-3, 2e-3}
	one.peers["numpy"], one.ratios["numpy"] = []float64{8e-3, 3e-3, 5e-3}, []float64{2, 3, 2.5}
	one.peers["gonum"], one.ratios["gonum"] = []float64{5e-3}, []float64{2.9}
	plain := newMeasured(task{name: "exp 32 100"}, comparison{})
	plain.ours = []float64{1}
	var out bytes.Buffer
	r := run{threads: 1, cases: []*measured{one, plain}, peak32: 1e9, peak64: 3e9}
	r.report(&out)
	want := [][]string{
		{"gemm 64 10 20 30", "2 [1 4], at most 3 holds", "2.0", "66.7 %", "50 % holds", "90 % **missed**", "numpy", "5", "2.50 [2.00 3.00]", "2 holds", "4 **missed**"},
		{"", "", "", "", "", "", "gonum", "5", "2.90 [2.90 2.90]", "3 **missed**, needs 69 % of peak", "3 **missed**"},
		{"exp 32 100", "1e+03 [1e+03 1e+03]", "", "", "", "", "", "", "", "", ""},
	}
	if got := cells(t, out.String()); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("the table is\n%q\nwant\n%q", got, want)
	}
	if !strings.Contains(out.String(), "\n3 of 4 gates and 0 of 3 aims hold; 1 gates could not be measured.\n") {
		t.Errorf("the report ends otherwise:\n%s", &out)
	}

	// With two threads, shares of the peak of one core are no bounds, and the others are
	// those for two threads. Without a peak there is no share of it.
	out.Reset()
	r.threads = 2
	r.report(&out)
	if got := cells(t, out.String())[0]; got[3] != "33.3 %" || got[4] != "" || got[9] != "5 **missed**, needs 67 % of peak" || got[10] != "4 **missed**" {
		t.Errorf("with two threads the row is %q", got)
	}
	out.Reset()
	r.threads, r.peak64 = 1, 0
	r.report(&out)
	if !strings.Contains(out.String(), "; 2 gates could not be measured.") {
		t.Errorf("without a peak the report ends otherwise:\n%s", &out)
	}
}

// fake is Python that answers by a function, and ends if it is nil.
type fake struct {
	answer  func(question string) string
	asked   []string
	waiting bytes.Buffer
	closed  bool
}

func (f *fake) Write(p []byte) (int, error) {
	q := strings.TrimSpace(string(p))
	f.asked = append(f.asked, q)
	if f.answer == nil {
		return 0, io.ErrClosedPipe
	}
	f.waiting.WriteString(f.answer(q) + "\n")
	return len(p), nil
}

func (f *fake) Read(p []byte) (int, error) { return f.waiting.Read(p) }

func (f *fake) Close() error { f.closed = true; return nil }

func (f *fake) python() *python {
	return &python{in: f, out: bufio.NewScanner(f), end: func() error { return nil }}
}

// An answer has two times above 0, and nothing else.
func TestSeconds(t *testing.T) {
	if w, p, ok := seconds("0.25 0.5"); !ok || w != 0.25 || p != 0.5 {
		t.Errorf("read %g, %g, %t", w, p, ok)
	}
	for _, bad := range []string{"", "none", "0.1", "0.1 x", "x 0.1", "0.1 0.2 0.3", "0 0.1", "0.1 0", "-1 1", "nan 1", "1 nan", "inf 1", "Traceback (most"} {
		if _, _, ok := seconds(bad); ok {
			t.Errorf("%q passed for times", bad)
		}
	}
}

// One thread uses CPU time, two threads the clock. Cases that Python does not know are left
// out. Once Python has ended it is not asked again.
func TestOther(t *testing.T) {
	f := &fake{answer: func(q string) string {
		if strings.HasPrefix(q, "numpy ") {
			return "0.25 0.5"
		}
		return "none"
	}}
	r := run{threads: 1, python: f.python()}
	m := newMeasured(task{name: "gemm 64 1 1 1"}, comparison{})
	if s, ok := r.other(m, "numpy"); !ok || s != 0.5 {
		t.Errorf("on one thread %g, %t", s, ok)
	}
	r.threads = 2
	if s, ok := r.other(m, "numpy"); !ok || s != 0.25 {
		t.Errorf("on two threads %g, %t", s, ok)
	}
	if _, ok := r.other(m, "torch"); ok {
		t.Error("what Python does not know has a time")
	}
	if want := []string{"numpy gemm 64 1 1 1", "numpy gemm 64 1 1 1", "torch gemm 64 1 1 1"}; !slices.Equal(f.asked, want) {
		t.Errorf("asked %q", f.asked)
	}
	// A slow case runs three times, a fast one every round.
	m.peers["numpy"] = []float64{2 * slow, 1, 1}
	if _, ok := r.other(m, "numpy"); ok {
		t.Error("a slow peer was taken a fourth time")
	}
	m.peers["numpy"][0] = slow / 2
	if _, ok := r.other(m, "numpy"); !ok {
		t.Error("a quick peer was not taken a fourth time")
	}
	var said bytes.Buffer
	log.SetOutput(&said)
	defer log.SetOutput(os.Stderr)
	f.answer = nil
	before := len(f.asked)
	for range 3 {
		if _, ok := r.other(m, "numpy"); ok {
			t.Error("Python has ended and has a time")
		}
	}
	if len(f.asked) != before+1 || strings.Count(said.String(), "Python ended at the case gemm 64 1 1 1 of numpy") != 1 {
		t.Errorf("asked %d times after the end, said %q", len(f.asked)-before, &said)
	}
	r.python = nil
	if _, ok := r.other(m, "numpy"); ok {
		t.Error("without Python there is a time")
	}
	r.python.close()
}

// gonum runs on one thread only if it is wanted, and three times at most. One worker is a
// peer where there are two.
func TestOtherOfOurs(t *testing.T) {
	ran, alone := 0, 0
	m := newMeasured(task{name: "gemm 64 1 1 1"}, comparison{gonum: func() { ran++ }, one: func() { alone++ }})
	r := run{threads: 1}
	if _, ok := r.other(m, "gonum"); ok || ran != 0 {
		t.Error("gonum ran where it is not wanted")
	}
	r.gonum = true
	if s, ok := r.other(m, "gonum"); !ok || ran != 1 || s < 0 {
		t.Errorf("gonum ran %d times", ran)
	}
	m.peers["gonum"] = []float64{1e-9, 1e-9, 1e-9}
	if _, ok := r.other(m, "gonum"); ok || ran != 1 {
		t.Error("gonum ran a fourth time")
	}
	if _, ok := r.other(m, "one worker"); ok || alone != 0 {
		t.Error("one worker is a peer of one thread")
	}
	r.threads = 2
	if _, ok := r.other(m, "one worker"); !ok || alone != 1 {
		t.Errorf("one worker ran %d times", alone)
	}
}

// The warm-up round leaves no times and skips gonum. Each run is prepared. A ratio is that
// of the times of its round.
func TestMeasure(t *testing.T) {
	prepared, ours, others := 0, 0, 0
	m := newMeasured(task{name: "gemm 64 1 1 1", wanted: []wanted{numpy(1, 0, 1), gonum(1, 1), torch(1, 1)}}, comparison{
		prepare: func() { prepared++ }, ours: func() { ours++ }, gonum: func() { others++ },
	})
	f := &fake{answer: func(q string) string {
		if strings.HasPrefix(q, "torch") {
			return "none"
		}
		return "1 0.5"
	}}
	r := run{threads: 1, gonum: true, python: f.python(), cases: []*measured{m}}
	const rounds = 4
	r.measure(rounds)
	if len(m.ours) != rounds || len(m.peers["numpy"]) != rounds || len(m.peers["gonum"]) != 3 || len(m.peers["torch"]) != 0 {
		t.Errorf("%d times of ours, %d of numpy, %d of gonum, %d of torch", len(m.ours), len(m.peers["numpy"]), len(m.peers["gonum"]), len(m.peers["torch"]))
	}
	if ours != 2*(rounds+1) || others != 3 || prepared != ours+others { // short cases run twice
		t.Errorf("ours ran %d times, gonum %d, prepared for %d", ours, others, prepared)
	}
	for i, ratio := range m.ratios["numpy"] {
		if ratio != 0.5/m.ours[i] {
			t.Errorf("round %d: the ratio is %g of %g", i, ratio, m.ours[i])
		}
	}
	if r.peak32 < 0 || r.peak64 < 0 || math.IsNaN(r.peak64) {
		t.Errorf("peaks %g, %g", r.peak32, r.peak64)
	}

	// With two threads a long case too first runs untimed, to wake the second core.
	r.threads, m.ours[0], ours = 2, 2*short, 0
	if r.take(m, false); ours != 2 {
		t.Errorf("with two threads ours ran %d times", ours)
	}
}

// A process is started with its number of threads, and one without output is an error.
func TestStartPython(t *testing.T) {
	script := func(text string) string {
		path := filepath.Join(t.TempDir(), "peer.sh")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	p, err := startPython("/bin/sh", script(`echo "versions for $1"; while read library kind bits size; do
		case $kind in gemm) echo "0.$size $bits";; *) echo none;; esac; done`), 2)
	if err != nil {
		t.Fatal(err)
	}
	if p.versions != "versions for 2" {
		t.Errorf("it has %q", p.versions)
	}
	if w, c, ok := p.time("numpy", "gemm 64 7"); !ok || w != 0.7 || c != 64 {
		t.Errorf("times %g, %g, %t", w, c, ok)
	}
	if _, _, ok := p.time("numpy", "exp 64 7"); ok {
		t.Error("an unknown case has times")
	}
	p.close()
	for _, bad := range []string{"exit 3", "exit 0"} {
		if _, err := startPython("/bin/sh", script(bad), 1); err == nil {
			t.Errorf("%q passed for Python", bad)
		}
	}
	if _, err := startPython(filepath.Join(t.TempDir(), "none"), "x", 1); err == nil {
		t.Error("no program passed for Python")
	}
}

func TestThreadCounts(t *testing.T) {
	if got, err := parseCounts("1,2,16"); err != nil || !slices.Equal(got, []int{1, 2, 16}) {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"", "0", "1,", "-1", "1,x", "1 2"} {
		if _, err := parseCounts(bad); err == nil || !strings.Contains(err.Error(), "want numbers ≥ 1") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestPeak(t *testing.T) {
	r := run{threads: 2, peak32: 10, peak64: 3}
	if a, b := r.peak("gemm 32 1 1 1"), r.peak("gemm 64 32 32 32"); a != 20 || b != 6 {
		t.Errorf("peaks %g and %g", a, b)
	}
}

func TestMachine(t *testing.T) {
	var out bytes.Buffer
	machine(&out)
	if !strings.Contains(out.String(), " processors, go1.") || strings.Count(out.String(), "\n") != 1 {
		t.Errorf("the machine is %q", &out)
	}
}
