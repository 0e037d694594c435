package bo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/bench/report"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// drawn returns results of made-up runs. Some are missing, some ended early, few levels of
// regret make ties, and in some no trial succeeds.
func drawn(rng *rand.Rand, log bool) (*results, *suiteResults, []string) {
	p := &plan{seeds: 1 + rng.IntN(8), trials: 12}
	var names []string
	for i, kind := range []Kind{Ours, Baseline, Peer, Peer} {
		names = append(names, fmt.Sprintf("o%d", i))
		if kind == Baseline {
			names[i] = "random"
		}
		p.contestants = append(p.contestants, Contestant{Name: names[i], Kind: kind})
	}
	s := &suiteResults{Suite: Suite{Name: "s", Title: "S", Log: log}, plan: p, runs: make(map[cell]map[string]*Run)}
	for i := range 1 + rng.IntN(5) {
		l := Listed{Name: fmt.Sprintf("s/p%d", i)}
		s.Problems = append(s.Problems, l)
		for seed := range p.seeds {
			at := cell{l.Name, uint64(seed + 1)}
			s.runs[at] = make(map[string]*Run)
			for _, name := range names {
				if rng.IntN(8) == 0 {
					continue
				}
				r := &Run{Problem: l.Name, Optimiser: name, Seed: at.seed, Best: -1, Median: 3, Clock: "cpu"}
				n := 12
				switch rng.IntN(8) {
				case 0:
					n, r.Ended = 1+rng.IntN(11), ErrEnded.Error()
				case 1:
					n, r.Ended = 1+rng.IntN(11), "an ask costs 1 s"
				}
				best := math.Inf(1)
				for range n {
					if rng.IntN(4) == 0 {
						best = min(best, -1+float64(rng.IntN(4)))
					}
					r.Trials = append(r.Trials, Trial{BestTrue: best, AskSeconds: rng.Float64()})
				}
				s.runs[at][name] = r
			}
		}
	}
	p.suites = []Suite{s.Suite}
	return &results{plan: p, suite: []*suiteResults{s}}, s, names
}

// lossOf is the loss by its definition. If the run does not count, ok is false.
func lossOf(s *suiteResults, problem string, seed uint64, name string, n int) (regret, loss float64, ok bool) {
	r := s.runs[cell{problem, seed}][name]
	if r == nil || len(r.Trials) < n && r.Ended != ErrEnded.Error() {
		return 0, 0, false
	}
	v := (r.Trials[min(n, len(r.Trials))-1].BestTrue + 1) / 4
	if v > 10 {
		v = 10
	}
	if !s.Log {
		return v, v, true
	}
	if v < 1e-8 {
		return v, -8, true
	}
	return v, math.Log(v) / math.Ln10, true
}

func TestStatisticsByTheirDefinitions(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	counted := 0
	for round := range 200 {
		_, s, names := drawn(rng, round%2 == 0)
		n := 1 + rng.IntN(12)
		// The mean rank is 1 + how many are better + half of how many others are equal.
		want := make([]float64, len(names))
		problems := 0
		for _, l := range s.Problems {
			sum, cells := make([]float64, len(names)), 0
			for at := uint64(1); at <= uint64(s.plan.seeds); at++ {
				v, all := make([]float64, len(names)), true
				for i, name := range names {
					var ok bool
					v[i], _, ok = lossOf(s, l.Name, at, name, n)
					all = all && ok
				}
				if !all {
					continue
				}
				cells++
				for i := range names {
					sum[i]++
					for j := range names {
						if v[j] < v[i] {
							sum[i]++
						} else if j != i && v[j] == v[i] {
							sum[i] += 0.5
						}
					}
				}
			}
			if cells > 0 {
				problems++
				for i := range want {
					want[i] += sum[i] / float64(cells)
				}
			}
		}
		if problems == 0 {
			continue
		}
		counted++
		got := s.meanRanks(s.cells(n, names...), names, n, measured)
		for i := range got {
			if math.Abs(got[i]-want[i]/float64(problems)) > 1e-9 {
				t.Fatalf("seed %d, round %d: rank of %s is %v, not %v", seed, round, names[i], got[i], want[i]/float64(problems))
			}
		}
		// These are the differences, and their mean over problems.
		listed, d := s.differences(names[0], names[1], n)
		at, mean := 0, 0.0
		for _, l := range s.Problems {
			var group []float64
			for seed := uint64(1); seed <= uint64(s.plan.seeds); seed++ {
				_, a, okA := lossOf(s, l.Name, seed, names[0], n)
				if _, b, okB := lossOf(s, l.Name, seed, names[1], n); okA && okB {
					group = append(group, a-b)
				}
			}
			if group == nil {
				continue
			}
			if listed[at] != l.Name || len(d[at]) != len(group) {
				t.Fatalf("seed %d, round %d: %d differences of %s, not %d", seed, round, len(d[at]), listed[at], len(group))
			}
			sum := 0.0
			for i, v := range group {
				sum += v
				if math.Abs(v-d[at][i]) > 1e-9 {
					t.Fatalf("seed %d, round %d: differences %v, not %v", seed, round, d[at], group)
				}
			}
			mean += sum / float64(len(group))
			at++
		}
		if at != len(d) || math.Abs(grandMean(d)-mean/float64(at)) > 1e-9 {
			t.Fatalf("seed %d, round %d: %d groups of mean %v, not %d of %v", seed, round, len(d), grandMean(d), at, mean/float64(at))
		}
	}
	if counted < 50 {
		t.Errorf("seed %d: only %d rounds had anything to compare", seed, counted)
	}
}

// An optimiser with a few runs does not reduce the runs on which the others are ranked.
func TestRanksLeaveOutWhoHasFewRuns(t *testing.T) {
	s := &suiteResults{Suite: Suite{Name: "s"}, plan: &plan{seeds: 6}, runs: make(map[cell]map[string]*Run)}
	p := &plan{seeds: 6, trials: 2}
	s.Problems = []Listed{{Name: "s/p"}}
	for _, k := range []string{"all", "third", "few"} {
		p.contestants = append(p.contestants, Contestant{Name: k, Kind: Peer})
	}
	for seed := range uint64(6) {
		at := cell{"s/p", seed + 1}
		s.runs[at] = make(map[string]*Run)
		for name, runs := range map[string]uint64{"all": 6, "third": 2, "few": 1} {
			if seed < runs {
				s.runs[at][name] = &Run{Median: 1, Trials: make([]Trial, 2)}
			}
		}
	}
	p.suites = []Suite{s.Suite}
	out := &report.Result{}
	(&results{plan: p, suite: []*suiteResults{s}}).ranks(out, "ranks", "", found, func(Contestant) bool { return true })
	if row := out.Tables[0].Rows[0]; row[3] != 2 || row[4] != 1.5 || row[5] != 1.5 || !math.IsNaN(row[6].(float64)) {
		t.Errorf("%v: not of the two runs of all and third, without few", row)
	}
}

// Every table can be made from any set of runs, and the duel counts each problem and run
// once.
func TestTablesOfAnyRuns(t *testing.T) {
	racetest.Alone(t)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 30 {
		r, _, _ := drawn(rng, false)
		out := &report.Result{}
		r.ranks(out, "ranks", "", found, func(Contestant) bool { return true })
		r.duels(out)
		r.againstRandom(out)
		r.curves(out)
		r.problems(out)
		r.coverage(out)
		r.workers(out)
		r.asks(out)
		r.who(out)
		for _, table := range out.Tables {
			switch table.Name {
			case "duels":
				problems, wins, ties, losses := table.Float("problems"), table.Float("wins"), table.Float("ties"), table.Float("losses")
				for i := range problems {
					if wins[i]+ties[i]+losses[i] != problems[i] {
						t.Errorf("seed %d: %v of %v problems", seed, wins[i]+ties[i]+losses[i], problems[i])
					}
				}
			case "random":
				low, mid, high := table.Float("low"), table.Float("difference"), table.Float("high")
				for i := range low {
					if !(low[i] <= mid[i]+1e-9 && mid[i] <= high[i]+1e-9) {
						t.Errorf("seed %d: %v is not within %v to %v", seed, mid[i], low[i], high[i])
					}
				}
			}
		}
	}
}

// A problem is won if every seed is better, and lost if every one is worse, with six or
// more seeds.
func TestDuel(t *testing.T) {
	better, worse, few := []float64{-1, -2, -3, -4, -5, -6}, []float64{1, 2, 3, 4, 5, 6}, []float64{-1, -2, -3, -4, -5}
	got := duel([][]float64{better, worse, few, {0, 0, 0, 0, 0, 0}})
	want := []any{4, 6, 1, 2, 1, 11, 6, 6}
	if !slices.Equal(got[:8], want) {
		t.Errorf("%v, not %v", got[:8], want)
	}
	if mean := got[8].(float64); math.Abs(mean-(-3.5+3.5-3+0)/4) > 1e-12 {
		t.Errorf("mean %v", mean)
	}
}
