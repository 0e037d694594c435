package bo

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/propose"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

const (
	latencyDim       = 8
	latencyAsks      = 300  // of ours, by default
	latencyMost      = 2000 // if no ask before waited for a new model
	latencyPeerShare = 15   // factor by which peers are asked less often
	latencyPeerLimit = 500  // trials of slow peers
)

// Latency measures the time of an ask after given numbers of trials (nil for 10², 10³, 10⁴,
// 10⁵). The function has 8 inputs, and its history narrows down on its best. The number of
// asks is 300 for 0, and peers get a fifteenth. Every ask comes after a tell, and nothing
// is prepared in between. Slow peers end at 500 trials, others at 10,000. The result is
// kept for [Comparison.Page]. With an error it is partial. The errors are
// [*SelectionError], [*experiment.ValueError], and that of ctx.
func (c *Comparison) Latency(ctx context.Context, sizes []int, asks int) (*report.Result, error) {
	p, err := c.plan()
	if err != nil {
		return nil, err
	}
	if len(sizes) == 0 {
		sizes = []int{100, 1000, 10_000, 100_000}
	}
	if asks == 0 {
		asks = latencyAsks
	}
	if asks < latencyPeerShare || asks > 100_000 {
		return nil, experiment.NewValueError("asks", asks, "15 to 100000")
	}
	for _, n := range sizes {
		if n < 20 || n > 1_000_000 {
			return nil, experiment.NewValueError("sizes", n, "20 to 1000000")
		}
	}
	r := &report.Result{}
	t := r.Table("latency", fmt.Sprintf("Asks after a number of trials in %d dimensions, each after a tell. Asks that wait for a new model have columns of their own", latencyDim),
		report.Column{Name: "optimiser"}, report.Column{Name: "trials"}, report.Column{Name: "asks"},
		report.Column{Name: "p50", Unit: "ms", Format: "%.2f"}, report.Column{Name: "p90", Unit: "ms", Format: "%.2f"}, report.Column{Name: "p99", Unit: "ms", Format: "%.2f"},
		report.Column{Name: "CPU", Unit: "ms", Format: "%.2f"},
		report.Column{Name: "new models"}, report.Column{Name: "longest", Unit: "ms", Format: "%.0f"},
		report.Column{Name: "first model", Unit: "ms", Format: "%.0f"}, report.Column{Name: "after restart", Unit: "ms", Format: "%.0f"},
		report.Column{Name: "m", Format: "%.0f"}, report.Column{Name: "heap", Unit: "MB", Format: "%.0f"}, report.Column{Name: "RssAnon", Unit: "MB", Format: "%.0f"})
	r.Note("p50, p90 and p99 are wall times of asks without a new model. CPU is their mean CPU time.")
	r.Note("New models counts the models made during the asks. Longest is the longest ask with a new model, including the time to make it.")
	r.Note("First model is the ask that makes the first model. After restart is the first ask of a process that has just read the study.")
	r.Note("Memory is that of the process with the study in it. Heap is taken after a collection. RssAnon is the largest value seen during the asks.")
	for i, k := range p.contestants {
		for j, n := range sizes {
			if c.Progress != nil {
				c.Progress(experiment.Progress{Done: i*len(sizes) + j, Of: len(p.contestants) * len(sizes), What: fmt.Sprintf("%s after %d trials", k.Name, n)})
			}
			switch {
			case k.component != nil:
				err = latencyOurs(ctx, t, k, n, asks)
			case n <= latencyPeerLimit || n <= 10_000 && !k.Slow:
				err = latencyPeer(ctx, t, c.Python, k, n, asks/latencyPeerShare)
			}
			if ctx.Err() != nil {
				return r, ctx.Err()
			} else if err != nil {
				r.Note("%s after %d trials: %v", k.Name, n, err)
			}
		}
	}
	return r, c.keepLatency(r)
}

// history is a study's past by formula. Its points approach the best, as in a search.
type history struct {
	space *space.Space
	rng   *rand.Rand
	n     int
	u     []float64
}

func newHistory(n int) (*history, error) {
	var parameters []space.Parameter
	for i := range latencyDim {
		parameters = append(parameters, space.NewFloat(fmt.Sprintf("x%d", i+1), 0, 1))
	}
	sp, err := space.New(parameters...)
	return &history{sp, stream.New(stream.Derive(1, "bench bo latency", uint64(n))), n, make([]float64, latencyDim)}, err
}

// at returns the configuration of trial i.
func (h *history) at(i int) (space.Config, error) {
	for j := range h.u {
		h.u[j] = min(max(0.4+h.rng.NormFloat64()*0.6/math.Sqrt(1+8*float64(i)/float64(h.n)), 0), 1)
	}
	return h.space.Decode(h.u)
}

// value measures a configuration.
func (h *history) value(c space.Config) (float64, error) {
	if err := h.space.Encode(c, h.u); err != nil {
		return 0, err
	}
	s := 0.0
	for i, v := range h.u {
		s += (v - 0.4) * (v - 0.4) * float64(1+i%3)
	}
	return s - math.Exp(-20*s) + 0.01*h.rng.NormFloat64(), nil
}

// bare is a study and its proposer without service and store, so that the parts of an ask
// can be measured separately.
type bare struct {
	h        *history
	spec     study.Spec
	study    *study.Study
	proposer propose.Proposer
}

func newBare(k Contestant, n int) (*bare, error) {
	h, err := newHistory(n)
	if err != nil {
		return nil, err
	}
	b := &bare{h: h, study: new(study.Study)}
	b.spec = study.Spec{Space: h.space, Objectives: []study.Objective{{Name: objective, Direction: study.Minimize}}, Seed: 1, Proposer: *k.component}
	if err := b.do(study.Create{Spec: b.spec}); err != nil {
		return nil, err
	}
	for i := range n {
		c, err := h.at(i)
		if err != nil {
			return nil, err
		}
		o, err := b.outcome(c)
		if err != nil {
			return nil, err
		}
		if err := b.do(study.Add{Config: c, Outcome: o}); err != nil {
			return nil, err
		}
	}
	b.proposer, err = propose.New(b.spec.Proposer, b.spec)
	return b, err
}

func (b *bare) do(c study.Command) error {
	_, events, err := b.study.Decide(stillTime, c)
	for _, e := range events {
		if err == nil {
			err = b.study.Apply(e)
		}
	}
	return err
}

func (b *bare) outcome(c space.Config) (study.Outcome, error) {
	v, err := b.h.value(c)
	return study.Outcome{State: study.Completed, Metrics: []study.Metric{{Name: objective, Values: []float64{v}}}}, err
}

// asked is the time of an ask.
type asked struct {
	wall, cpu float64 // seconds
	model     bool    // a new model came before it
}

// ask makes the next suggestion and starts its trial.
func (b *bare) ask(ctx context.Context) (asked, error) {
	var a asked
	watch := experiment.StartWatch()
	if m, ok := b.proposer.(propose.Modeler); ok {
		event, due, err := m.Anchor(ctx, b.study)
		if err == nil && due {
			a.model, err = true, b.do(event)
		}
		if err != nil {
			return a, err
		}
	}
	p, err := b.proposer.Propose(ctx, b.study, 1)
	if err != nil {
		return a, err
	}
	a.wall, a.cpu = watch.Wall(), watch.CPU()
	return a, b.do(study.Start{Ask: study.Ask{Count: 1}, Trial: b.study.Trials(), Suggestion: p.Suggestions[0]})
}

// tell ends the last trial.
func (b *bare) tell() error {
	t, _ := b.study.Trial(b.study.Trials() - 1)
	o, err := b.outcome(t.Config)
	if err != nil {
		return err
	}
	return b.do(study.Tell{Trial: t.Number, Outcome: o})
}

// stillTime is the constant time of all events.
var stillTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// latencyOurs adds a row for a proposer of this module.
func latencyOurs(ctx context.Context, t *report.Table, k Contestant, n, asks int) error {
	b, err := newBare(k, n)
	if err != nil {
		return err
	}
	debug.FreeOSMemory() // frees the memory of earlier rows and of making the study
	first, err := b.ask(ctx)
	if err != nil {
		return err
	}
	var wall, cpu []float64
	models, longest, rss := 0, math.NaN(), 0.0
	_, anchored := b.proposer.(propose.Modeler)
	for i := 0; len(wall) < asks || anchored && models == 0 && len(wall) < latencyMost; i++ {
		if err := b.tell(); err != nil {
			return err
		}
		a, err := b.ask(ctx)
		if err != nil {
			return err
		}
		if a.model {
			models, longest = models+1, max(a.wall, zeroNaN(longest))
		} else {
			wall, cpu = append(wall, a.wall), append(cpu, a.cpu)
		}
		if i%10 == 0 {
			rss = max(rss, anonymous())
		}
	}
	if err := b.tell(); err != nil {
		return err
	}
	restart, err := b.restart(ctx)
	if err != nil {
		return err
	}
	m, firstModel := math.NaN(), math.NaN()
	if d, ok := b.proposer.(propose.Modeler); ok {
		diagnosis, err := d.Diagnose(ctx, b.study)
		if err != nil {
			return err
		}
		m, firstModel = float64(diagnosis.InducingPoints), 1e3*first.wall
	}
	var mem runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&mem)
	q := experiment.Quantiles(wall, 0.5, 0.9, 0.99)
	t.Add(k.Name, n, len(wall), 1e3*q[0], 1e3*q[1], 1e3*q[2], 1e3*means([][]float64{cpu})[0],
		models, 1e3*longest, firstModel, 1e3*restart, m, float64(mem.HeapAlloc)/1e6, rss/1e6)
	runtime.KeepAlive(b)
	return nil
}

func zeroNaN(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// restart returns the wall time of an ask by a new proposer, which has only the study.
func (b *bare) restart(ctx context.Context) (float64, error) {
	p, err := propose.New(b.spec.Proposer, b.spec)
	if err != nil {
		return 0, err
	}
	watch := experiment.StartWatch()
	_, err = p.Propose(ctx, b.study, 1)
	return watch.Wall(), err
}

// anonymous returns the bytes of RssAnon, or NaN where the system does not report them.
func anonymous() float64 {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return math.NaN()
	}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) == 3 && fields[0] == "RssAnon:" {
			kB, err := strconv.ParseFloat(fields[1], 64)
			if err != nil {
				return math.NaN()
			}
			return kB * 1024
		}
	}
	return math.NaN()
}

// latencyPeer adds a row for an optimiser that offers only ask and tell.
func latencyPeer(ctx context.Context, t *report.Table, python string, k Contestant, n, asks int) (err error) {
	h, err := newHistory(n)
	if err != nil {
		return err
	}
	o, err := k.New(ctx, Setup{Space: h.space, Seed: 1, Trials: n + asks + 1, Python: python})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, o.Close()) }()
	for i := range n {
		c, err := h.at(i)
		if err != nil {
			return err
		}
		v, err := h.value(c)
		if err != nil {
			return err
		}
		if err := o.Tell(ctx, c, v, true); err != nil {
			return err
		}
	}
	var wall, cpu []float64
	first := 0.0
	for i := range asks + 1 {
		watch := experiment.StartWatch()
		c, err := o.Ask(ctx)
		if err != nil {
			return err
		}
		if i == 0 {
			first = watch.Wall()
		} else {
			wall = append(wall, watch.Wall())
		}
		if timed, ok := o.(Timed); ok && i > 0 {
			cpu = append(cpu, timed.AskSeconds())
		}
		v, err := h.value(c)
		if err != nil {
			return err
		}
		if err := o.Tell(ctx, c, v, true); err != nil {
			return err
		}
	}
	q := experiment.Quantiles(wall, 0.5, 0.9, 0.99)
	seconds := math.NaN()
	if len(cpu) > 0 {
		seconds = means([][]float64{cpu})[0]
	}
	t.Add(k.Name, n, len(wall), 1e3*q[0], 1e3*q[1], 1e3*q[2], 1e3*seconds, 0, math.NaN(), 1e3*first, math.NaN(), math.NaN(), math.NaN(), math.NaN())
	return nil
}
