// several measures the proposer on problems with several objectives. It writes a line of JSON for each
// run, with the share of the front's hypervolume after 25, 50 and 100 trials, and prints the means.
//
//	go -C bench run ./several OUT PROBLEM,…|all FIRST-LAST TRIALS [OPTIONS]
//
// FIRST and LAST are seeds, and OPTIONS those of the proposer in JSON. The variable WORKERS is how many
// trials run at once.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

// record is one run. Y are true values, also where measurements have noise.
type record struct {
	Problem string             `json:"problem"`
	Seed    int                `json:"seed"`
	Broke   int                `json:"broke"` // trials that broke the limit or crashed
	Share   map[string]float64 `json:"share"` // of the hypervolume, by trials
	X       [][]float64        `json:"x"`
	Y       [][]float64        `json:"y"`
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
			fmt.Printf("  %s: %.3f", k, sum[k])
		}
		fmt.Println()
	}
	return nil
}

func run(p *problem, options string, seed, n int) (*record, error) {
	ctx := context.Background()
	t := engine.Open(memory.New(), engine.Options{ProposeTimeout: 24 * time.Hour, Now: func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }})
	defer t.Close()
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
	if _, err := t.CreateStudy(ctx, "m", study.Create{Spec: spec}); err != nil {
		return nil, err
	}
	workers, _ := strconv.Atoi(os.Getenv("WORKERS"))
	rng := rand.New(rand.NewPCG(uint64(seed), 99))
	r := &record{Problem: p.name, Seed: seed, Share: make(map[string]float64)}
	var open []study.Tell
	for i := range n {
		asked, err := t.Ask(ctx, "m", study.Ask{Count: 1, New: true})
		if err != nil {
			return nil, err
		}
		config := asked.Trials[0].Config
		told := study.Tell{Trial: asked.Trials[0].Number, Outcome: p.outcome(config, rng)}
		open = append(open, told)
		x := p.point(config)
		y := p.f(x)
		if told.Outcome.State == study.Failed || p.limit != nil && p.limit(x) > 0 {
			y = slices.Repeat([]float64{9}, p.k)
			r.Broke++
		}
		r.X, r.Y = append(r.X, x), append(r.Y, y)
		if len(open) >= max(workers, 1) {
			if _, err := t.Tell(ctx, "m", open[0]); err != nil {
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
