//go:build linux

package main

import (
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/internal/simd"
)

// run is all cases with one number of threads.
type run struct {
	threads        int
	gonum          bool
	python         *python
	cases          []*measured
	peak32, peak64 float64
}

// measured is one case with its times in seconds, by round.
type measured struct {
	task
	c             comparison
	ours          []float64
	peers, ratios map[string][]float64
}

func newMeasured(t task, c comparison) *measured {
	return &measured{task: t, c: c, ratios: map[string][]float64{}, peers: map[string][]float64{}}
}

// measure runs all cases, after a round to warm up.
func (r *run) measure(rounds int) {
	var p32, p64 []float64
	for round := range rounds + 1 {
		a, b := peaks()
		p32, p64 = append(p32, a), append(p64, b)
		for _, m := range r.cases {
			r.take(m, round == 0)
		}
	}
	_, r.peak32, _ = quartiles(p32)
	_, r.peak64, _ = quartiles(p64)
}

// short is the time below which a case is first run once untimed, on every side, so that it
// starts with warm caches. With two threads every case is, because a core that has been idle
// takes milliseconds to wake in a virtual machine.
const short = 5e-3

// settle is how long a peer's second thread may spin while it waits for more work. With two
// threads nothing is timed on wall clocks before that is over.
const settle = 300 * time.Millisecond

func (r *run) take(m *measured, warm bool) {
	runtime.GC()
	which := uintptr(thread)
	if r.threads > 1 {
		which = wall
		time.Sleep(settle)
	}
	if r.threads > 1 || len(m.ours) == 0 || m.ours[0] < short {
		m.time(which, m.c.ours)
	}
	t := m.time(which, m.c.ours)
	if !warm {
		m.ours = append(m.ours, t)
	}
	for _, w := range m.wanted {
		if warm && w.peer == "gonum" {
			continue
		}
		p, ok := r.other(m, w.peer)
		if ok && !warm {
			m.peers[w.peer], m.ratios[w.peer] = append(m.peers[w.peer], p), append(m.ratios[w.peer], p/t)
		}
	}
}

// time runs f once.
func (m *measured) time(which uintptr, f func()) (seconds float64) {
	if m.c.prepare != nil {
		m.c.prepare()
	}
	start := clock(which)
	f()
	return clock(which) - start
}

// slow is the time above which a peer runs only three times.
const slow = 0.7

// other times a peer. gonum, which is slow, and other slow peers run three times at most.
func (r *run) other(m *measured, peer string) (seconds float64, ok bool) {
	seen := m.peers[peer]
	if len(seen) == 3 && (peer == "gonum" || seen[0] > slow) {
		return 0, false
	}
	if peer == "one worker" {
		if r.threads == 1 {
			return 0, false
		}
		time.Sleep(settle)
		return m.time(wall, m.c.one), true
	}
	if peer != "gonum" {
		elapsed, cpu, ok := r.python.time(peer, m.name)
		if r.threads > 1 {
			return elapsed, ok
		}
		return cpu, ok
	}
	if !r.gonum || m.c.gonum == nil {
		return 0, false
	}
	return m.time(processor, m.c.gonum), true
}

// peaks measures the speed of multiply-adds alone, in flops a second, 0 without assembly.
func peaks() (p32, p64 float64) {
	const n = 200000
	for range 3 {
		start := clock(thread)
		flops32 := simd.Peak[float32](n)
		middle := clock(thread)
		flops64 := simd.Peak[float64](n)
		end := clock(thread)
		p32, p64 = max(p32, flops32/(middle-start)), max(p64, flops64/(end-middle))
	}
	return p32, p64
}

// quartiles returns the lower quartile, the median and the upper quartile of at
// least one number.
func quartiles(x []float64) (low, mid, high float64) {
	x = slices.Sorted(slices.Values(x))
	n := len(x)
	return x[n/4], x[n/2], x[3*n/4]
}

func (r *run) report(w io.Writer) {
	fmt.Fprintf(w, "\n%d thread(s); path %s; FMA peak of a core in this run: float32 %.1f, float64 %.1f Gflop/s\n", r.threads, simd.For[float64]().Path, r.peak32/1e9, r.peak64/1e9)
	if r.python != nil {
		fmt.Fprintln(w, r.python.versions)
	}
	fmt.Fprint(w, "\n| case | ms [quartiles] | Gflop/s | of peak | gate | aim | peer | its ms | peer / ours [quartiles] | gate | aim |\n|---|---|---|---|---|---|---|---|---|---|---|\n")
	var gates, aims tally
	for _, m := range r.cases {
		low, mid, high := quartiles(m.ours)
		fmt.Fprintf(w, "| %s | %.3g [%.3g %.3g]", m.name, 1e3*mid, 1e3*low, 1e3*high)
		if m.most > 0 {
			fmt.Fprintf(w, ", at most %s", gates.judgeMost(1e3*mid, 1e3*m.most))
		}
		fmt.Fprint(w, " |")
		share := 0.0 // of the peak
		switch peak := r.peak(m.name); {
		case m.c.flops > 0 && peak > 0:
			rate := m.c.flops / mid
			share = rate / peak
			fmt.Fprintf(w, " %.1f | %.1f %% |", rate/1e9, 100*share)
			gate, aim := m.gate, m.aim
			if r.threads > 1 {
				gate, aim = 0, 0
			}
			fmt.Fprintf(w, " %s | %s |", gates.judge(share, gate, 100, " %"), aims.judge(share, aim, 100, " %"))
		default:
			gates.leaveOut(m.gate)
			fmt.Fprint(w, " | | | |")
		}
		empty := true
		for _, want := range m.wanted {
			times, ratios := m.peers[want.peer], m.ratios[want.peer]
			gate := want.gate[min(r.threads, 2)-1]
			if len(times) == 0 {
				gates.leaveOut(gate)
				continue
			}
			if !empty {
				fmt.Fprint(w, "\n| | | | | | |")
			}
			empty = false
			_, t, _ := quartiles(times)
			low, ratio, high := quartiles(ratios)
			fmt.Fprintf(w, " %s | %.3g | %.2f [%.2f %.2f] |", want.peer, 1e3*t, ratio, low, high)
			fmt.Fprintf(w, " %s%s | %s |", gates.judge(ratio, gate, 1, ""), needs(share, ratio, gate), aims.judge(ratio, want.aim, 1, ""))
		}
		if empty {
			fmt.Fprint(w, " | | | | |")
		}
		fmt.Fprintln(w)
	}
	fmt.Fprintf(w, "\n%d of %d gates and %d of %d aims hold", gates.held, gates.all, aims.held, aims.all)
	if gates.out > 0 {
		fmt.Fprintf(w, "; %d gates could not be measured", gates.out)
	}
	fmt.Fprintln(w, ".")
}

// tally counts bounds that hold, and those that could not be judged.
type tally struct{ held, all, out int }

// leaveOut counts a bound without a measurement. The bound 0 is none.
func (t *tally) leaveOut(bound float64) {
	if bound != 0 {
		t.out++
	}
}

// judge compares a value with a bound and prints it times scale. The bound 0 is none. A
// value that is not a number fails every bound.
func (t *tally) judge(value, bound, scale float64, unit string) string {
	if bound == 0 {
		return ""
	}
	t.all++
	if !(value >= bound) {
		return fmt.Sprintf("%.3g%s **missed**", scale*bound, unit)
	}
	t.held++
	return fmt.Sprintf("%.3g%s holds", scale*bound, unit)
}

// needs says which share of the peak a missed ratio would take, at the peer's present speed.
// Over 100 % no program can reach it on this machine. share is that of ours, 0 if unknown.
func needs(share, ratio, bound float64) string {
	if share == 0 || !(ratio < bound) {
		return ""
	}
	return fmt.Sprintf(", needs %.0f %% of peak", 100*share*bound/ratio)
}

// judgeMost is judge for an upper bound.
func (t *tally) judgeMost(value, bound float64) string {
	t.all++
	if !(value <= bound) {
		return fmt.Sprintf("%.3g **missed**", bound)
	}
	t.held++
	return fmt.Sprintf("%.3g holds", bound)
}

// peak returns the peak of all threads, for the precision in the name.
func (r *run) peak(name string) float64 {
	if strings.Fields(name)[1] == "32" {
		return r.peak32 * float64(r.threads)
	}
	return r.peak64 * float64(r.threads)
}
