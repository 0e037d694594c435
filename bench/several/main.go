// several measures the proposer on problems with several objectives. It writes a line of JSON for each
// run, with the share of the front's hypervolume after 25, 50 and 100 trials, and prints the means.
//
//	go -C bench run ./several OUT PROBLEM,…|all FIRST-LAST TRIALS [OPTIONS]
//
// FIRST and LAST are seeds, and OPTIONS those of the proposer in JSON. The variable WORKERS is how many
// trials run at once. With OPTIMISER=ax, optuna-tpe, optuna-gp or optuna-nsga2 it is one of these in place
// of the proposer, and PYTHON is where make bench-bo-peers has put them.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/bench/bo"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// record is one run. Y are true values, also where measurements have noise.
type record struct {
	// Optimiser is a peer, or empty for the proposer.
	Optimiser string             `json:"optimiser,omitempty"`
	Problem   string             `json:"problem"`
	Seed      int                `json:"seed"`
	Broke     int                `json:"broke"` // trials that broke the limit or crashed
	Share     map[string]float64 `json:"share"` // of the hypervolume, by trials
	X         [][]float64        `json:"x"`
	Y         [][]float64        `json:"y"`
}

var shown = []string{"25", "50", "100"}

func main() {
	if len(os.Args) < 5 {
		fmt.Fprintln(os.Stderr, "usage: several OUT PROBLEM,…|all FIRST-LAST TRIALS [OPTIONS]")
		os.Exit(2)
	}
	if err := measure(os.Args[1], os.Args[2], os.Args[3], os.Args[4], strings.Join(os.Args[5:], "")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func measure(out, names, seeds, trials, options string) error {
	var first, last int
	if _, err := fmt.Sscanf(seeds, "%d-%d", &first, &last); err != nil {
		return fmt.Errorf("seeds %q are not like 1-5: %w", seeds, err)
	}
	n, err := strconv.Atoi(trials)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, p := range problems() {
		if names != "all" && !slices.Contains(strings.Split(names, ","), p.name) {
			continue
		}
		sum := make(map[string]float64)
		for seed := first; seed <= last; seed++ {
			r, err := run(&p, options, seed, n)
			if err != nil {
				return err
			}
			if err := json.NewEncoder(f).Encode(r); err != nil {
				return err
			}
			for k, v := range r.Share {
				sum[k] += v / float64(last-first+1)
			}
		}
		fmt.Printf("%-8s", p.name)
		for _, k := range shown {
			if v, ok := sum[k]; ok {
				fmt.Printf("  %s: %.3f", k, v)
			}
		}
		fmt.Println()
	}
	return nil
}

// optimiser proposes configurations. Outcomes are told in the order of these.
type optimiser interface {
	ask(ctx context.Context) (space.Config, error)
	tell(ctx context.Context, o study.Outcome) error
	close() error
}

// tuner is the proposer of BKB Tuner.
type tuner struct {
	*engine.Engine
	open []int // trials
}

func newTuner(ctx context.Context, p *problem, options string, seed int) (*tuner, error) {
	t := &tuner{Engine: engine.Open(memory.New(), engine.Options{ProposeTimeout: 24 * time.Hour, Now: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }})}
	if p.limit != nil && !p.fails {
		all := make(map[string]any)
		_ = json.Unmarshal([]byte(options), &all)
		all["constraints"] = map[string]any{"limit": map[string]float64{"max": 0}}
		b, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		options = string(b)
	}
	spec := study.Spec{Space: p.space(), Seed: uint64(seed) + 1, Proposer: study.Component{Name: "bkb", Options: options}}
	for j := range p.k {
		spec.Objectives = append(spec.Objectives, study.Objective{Name: fmt.Sprintf("f%d", j), Direction: study.Minimize})
	}
	_, err := t.CreateStudy(ctx, "m", study.Create{Spec: spec})
	return t, err
}

func (t *tuner) ask(ctx context.Context) (space.Config, error) {
	asked, err := t.Ask(ctx, "m", study.Ask{Count: 1, New: true})
	if err != nil {
		return space.Config{}, err
	}
	t.open = append(t.open, asked.Trials[0].Number)
	return asked.Trials[0].Config, nil
}

func (t *tuner) tell(ctx context.Context, o study.Outcome) error {
	_, err := t.Tell(ctx, "m", study.Tell{Trial: t.open[0], Outcome: o})
	t.open = t.open[1:]
	return err
}

func (t *tuner) close() error { return t.Close() }

// peer is an optimiser of another project.
type peer struct {
	bo.Several
	objectives int
	open       []space.Config
}

func newPeer(ctx context.Context, p *problem, name string, seed, n int) (*peer, error) {
	all := append(bo.Contestants(), bo.NSGA2)
	i := slices.IndexFunc(all, func(c bo.Contestant) bool { return c.Name == name && c.Kind == bo.Peer })
	if i < 0 {
		return nil, fmt.Errorf("there is no OPTIMISER %q", name)
	}
	o, err := all[i].New(ctx, bo.Setup{Space: p.space(), Seed: uint64(seed) + 1, Trials: n, Python: os.Getenv("PYTHON"), Objectives: p.k})
	if err != nil {
		return nil, err
	}
	return &peer{Several: o.(bo.Several), objectives: p.k}, nil
}

func (p *peer) ask(ctx context.Context) (space.Config, error) {
	c, err := p.Ask(ctx)
	p.open = append(p.open, c)
	return c, err
}

func (p *peer) tell(ctx context.Context, o study.Outcome) error {
	var values, metrics []float64
	for j, m := range o.Metrics {
		if j < p.objectives {
			values = append(values, m.Values[0])
		} else {
			metrics = append(metrics, m.Values[0])
		}
	}
	c := p.open[0]
	p.open = p.open[1:]
	return p.TellSeveral(ctx, c, values, metrics)
}

func (p *peer) close() error { return p.Close() }

func start(ctx context.Context, p *problem, options string, seed, n int) (optimiser, error) {
	if name := os.Getenv("OPTIMISER"); name != "" {
		return newPeer(ctx, p, name, seed, n)
	}
	return newTuner(ctx, p, options, seed)
}

func run(p *problem, options string, seed, n int) (r *record, err error) {
	ctx := context.Background()
	t, err := start(ctx, p, options, seed, n)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	workers, _ := strconv.Atoi(os.Getenv("WORKERS"))
	rng := rand.New(rand.NewPCG(uint64(seed), 99))
	r = &record{Optimiser: os.Getenv("OPTIMISER"), Problem: p.name, Seed: seed, Share: make(map[string]float64)}
	var open []study.Outcome
	for i := range n {
		config, err := t.ask(ctx)
		if err != nil {
			return nil, err
		}
		outcome := p.outcome(config, rng)
		open = append(open, outcome)
		x := p.point(config)
		y := p.f(x)
		if outcome.State == study.Failed || p.limit != nil && p.limit(x) > 0 {
			y = slices.Repeat([]float64{9}, p.k)
			r.Broke++
		}
		r.X, r.Y = append(r.X, x), append(r.Y, y)
		if len(open) >= max(workers, 1) {
			if err := t.tell(ctx, open[0]); err != nil {
				return nil, err
			}
			open = open[1:]
		}
		if k := strconv.Itoa(i + 1); slices.Contains(shown, k) {
			r.Share[k] = hypervolume(slices.Clone(r.Y), p.reference) / p.best
		}
	}
	return r, nil
}

// outcome measures a configuration.
func (p *problem) outcome(c space.Config, rng *rand.Rand) study.Outcome {
	x, o := p.point(c), study.Outcome{State: study.Completed}
	for j, y := range p.f(x) {
		o.Metrics = append(o.Metrics, study.Metric{Name: fmt.Sprintf("f%d", j), Values: []float64{y + p.noise*rng.NormFloat64()}})
	}
	if p.flaky > 0 && rng.Float64() < p.flaky {
		return study.Outcome{State: study.Failed, Reason: study.FailedCrash}
	}
	switch {
	case p.limit == nil:
	case !p.fails:
		o.Metrics = append(o.Metrics, study.Metric{Name: "limit", Values: []float64{p.limit(x)}})
	case p.limit(x) > 0:
		return study.Outcome{State: study.Failed, Reason: study.FailedCrash}
	}
	return o
}

// point is the input of the problem at a configuration.
func (p *problem) point(c space.Config) []float64 {
	x := make([]float64, p.d)
	for i := range x {
		v, _ := c.Get(fmt.Sprintf("x%d", i))
		if s, ok := v.AsString(); ok {
			x[i], _ = strconv.ParseFloat(s[1:], 64)
		} else {
			x[i], _ = v.Number()
		}
	}
	return x
}
