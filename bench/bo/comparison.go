package bo

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/bench/experiment"
)

// Comparison describes a comparison. Zero values of all fields but Out mean the settings of
// the tier.
type Comparison struct {
	Out  string // directory of the runs, of which existing ones are not run again
	Data string // data directory, "" for none
	// Python is the interpreter that has the peers, "" for none.
	Python string // or the directory of environments of make bench-bo-peers
	Tier   Tier   // "" for Standard
	// Suites, Problems and Optimisers choose by name. Problems may be patterns of
	// path.Match for the whole name or for the part after its slash. A problem that is
	// named in full is included in any tier. Optimisers may be kinds. By default they are
	// ours and baselines, peers if there is Python, and ablations in the tier Full.
	Suites, Problems, Optimisers []string
	Variants                     []Contestant // further ones, which need not be chosen
	Seeds, Trials                int
	SkipSeeds                    int // seeds left out, so that the first is SkipSeeds + 1
	Jobs                         int // runs at a time, 0 for 1. CPU time is measured only with 1.
	// Progress, if not nil, receives the progress, from one goroutine at a time.
	Progress func(experiment.Progress)
}

// SelectionError reports a name that selects nothing.
type SelectionError struct {
	What, Name string // "suite", "problem", "optimiser", "tier"
	Known      []string
}

func (e *SelectionError) Error() string {
	text := fmt.Sprintf("there is no %s %q", e.What, e.Name)
	if len(e.Known) > 0 {
		text += "; there is " + strings.Join(e.Known, ", ")
	}
	return text
}

// plan is a Comparison with its defaults filled in.
type plan struct {
	suites      []Suite // with the chosen problems
	contestants []Contestant
	seeds, skip int
	trials      int
}

// tiers in their order.
var tiers = []Tier{Smoke, Standard, Full}

// plan checks the comparison. The errors are [*SelectionError] and [*experiment.ValueError].
func (c *Comparison) plan() (*plan, error) {
	tier := c.Tier
	if tier == "" {
		tier = Standard
	}
	at := slices.Index(tiers, tier)
	if at < 0 {
		return nil, &SelectionError{"tier", string(tier), []string{string(Smoke), string(Standard), string(Full)}}
	}
	for _, v := range []struct {
		what  string
		value int
	}{{"seeds", c.Seeds}, {"trials", c.Trials}, {"jobs", c.Jobs}} {
		if v.value < 0 {
			return nil, experiment.NewValueError(v.what, v.value, "1 or more (0: the tier's own)")
		}
	}
	if c.SkipSeeds < 0 {
		return nil, experiment.NewValueError("skip-seeds", c.SkipSeeds, "0 or more")
	}
	p := &plan{seeds: c.Seeds, skip: c.SkipSeeds, trials: c.Trials}
	if p.seeds == 0 {
		p.seeds = []int{2, 10, 10}[at]
	}
	if p.trials == 0 {
		p.trials = []int{20, 200, 1000}[at]
	}
	var err error
	if p.suites, err = c.problems(at); err != nil {
		return nil, err
	}
	p.contestants, err = c.contestants(tier)
	return p, err
}

// problems returns the suites with the chosen problems.
func (c *Comparison) problems(tier int) ([]Suite, error) {
	var out []Suite
	used := make(map[string]bool)
	for _, s := range Suites() {
		if len(c.Suites) > 0 && !slices.Contains(c.Suites, s.Name) {
			continue
		}
		used[s.Name] = true
		var listed []Listed
		for _, l := range s.Problems {
			named, matched := len(c.Problems) == 0, len(c.Problems) == 0
			for _, pattern := range c.Problems {
				if hit, exact := matches(pattern, l.Name); hit {
					used[pattern], matched, named = true, true, named || exact
				}
			}
			inTier := slices.Index(tiers, l.Tier) <= tier
			if matched && (inTier || named && len(c.Problems) > 0) {
				listed = append(listed, l)
			}
		}
		if len(listed) > 0 {
			s.Problems = listed
			out = append(out, s)
		}
	}
	for _, name := range c.Suites {
		if !used[name] {
			return nil, &SelectionError{"suite", name, SuiteNames()}
		}
	}
	for _, name := range c.Problems {
		if !used[name] {
			return nil, &SelectionError{"problem", name, nil}
		}
	}
	return out, nil
}

// matches reports whether a pattern matches a problem, and whether it names it in full.
func matches(pattern, name string) (hit, exact bool) {
	if pattern == name {
		return true, true
	}
	_, short, _ := strings.Cut(name, "/")
	for _, text := range []string{name, short} {
		if ok, err := path.Match(pattern, text); ok && err == nil {
			return true, false
		}
	}
	return false, false
}

// contestants returns the chosen contestants.
func (c *Comparison) contestants(tier Tier) ([]Contestant, error) {
	all := slices.Concat(Contestants(), c.Variants)
	used := make(map[string]bool)
	var out []Contestant
	for i, k := range all {
		chosen := i >= len(all)-len(c.Variants)
		if len(c.Optimisers) == 0 {
			chosen = chosen || k.Kind == Ablation && tier == Full || k.Kind == Peer && c.Python != "" || k.Kind == Ours || k.Kind == Baseline
		}
		for _, name := range c.Optimisers {
			if name == k.Name || name == string(k.Kind) {
				used[name], chosen = true, true
			}
		}
		if chosen && slices.ContainsFunc(out, func(o Contestant) bool { return o.Name == k.Name }) {
			return nil, &SelectionError{"second optimiser named", k.Name, nil}
		}
		if chosen {
			out = append(out, k)
		}
	}
	for _, name := range c.Optimisers {
		if !used[name] {
			return nil, &SelectionError{"optimiser", name, ContestantNames()}
		}
	}
	return out, nil
}

// SuiteNames returns the names of all suites.
func SuiteNames() []string {
	var names []string
	for _, s := range Suites() {
		names = append(names, s.Name)
	}
	return names
}

// ContestantNames returns the names of all contestants, and the kinds.
func ContestantNames() []string {
	var names []string
	for _, c := range Contestants() {
		names = append(names, c.Name)
	}
	return append(names, string(Ours), string(Ablation), string(Baseline), string(Peer))
}

// seedsOf returns how many seeds a contestant gets. Slow ones get half.
func (p *plan) seedsOf(k Contestant) int {
	if k.Slow {
		return (p.seeds + 1) / 2
	}
	return p.seeds
}

// seed returns a seed by its number from 0 on.
func (p *plan) seed(n int) uint64 { return uint64(p.skip + n + 1) }

// job is a run to be done.
type job struct {
	listed     Listed
	contestant Contestant
	seed       uint64
}

// jobs returns the runs in an order in which any number of first runs is a balanced sample.
// All problems and optimisers run with the first seed, then with the next.
func (p *plan) jobs() []job {
	var out []job
	for seed := range p.seeds {
		for _, s := range p.suites {
			for _, l := range s.Problems {
				for _, k := range p.contestants {
					if seed < p.seedsOf(k) {
						out = append(out, job{l, k, p.seed(seed)})
					}
				}
			}
		}
	}
	return out
}

// budgets are the numbers of trials after which optimisers are compared.
func (p *plan) budgets() []int { return budgetsOf(p.trials) }

func budgetsOf(trials int) []int {
	var out []int
	for _, n := range []int{50, 200, 1000} {
		if n <= trials {
			out = append(out, n)
		}
	}
	if len(out) == 0 {
		out = []int{(trials + 1) / 2}
	}
	if last := out[len(out)-1]; last != trials {
		out = append(out, trials)
	}
	return out
}
