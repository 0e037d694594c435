package prune

import (
	"fmt"
	"math"
	"math/bits"

	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/tuner/study"
)

// maxResource is the largest step that an option may name as a rung or as the end. Up to
// it, all weights and rungs fit into 64 bits.
const maxResource = 1_000_000_000_000_000

// halving is the rule of the pruners "asha" and "hyperband".
type halving struct {
	metric   metric
	seed     uint64
	factor   int
	least    int
	brackets []bracket
	weights  uint64 // sum
}

// bracket is one ladder.
type bracket struct {
	weight uint64 // a share of the trials in proportion to it comes here
	rungs  []rung
}

type rung struct {
	resource int64
	losses   ranking
}

func newASHA(o *study.Options, spec study.Spec) Pruner {
	h, r, most := readHalving(o, spec, 4)
	if most == 0 {
		most = math.MaxInt64
	}
	h.add(1, r, most)
	return newFold(h)
}

func newHyperband(o *study.Options, spec study.Spec) Pruner {
	h, r, most := readHalving(o, spec, 3)
	if most == 0 {
		o.Fail("pruner.options.max_resource", "none", "hyperband needs the last step of a trial", "give the last step that trials report")
	}
	top := int64(0) // ⌊log_η(most/r)⌋
	for x := most / r; x >= int64(h.factor); x /= int64(h.factor) {
		top++
	}
	for b := range o.Whole("brackets", top+1, 1, top+1) {
		s := top - b
		power := pow(uint64(h.factor), s)
		h.add((uint64(top+1)*power+uint64(s))/uint64(s+1), r, most)
		r *= int64(h.factor)
	}
	return newFold(h)
}

// readHalving reads the common options. The value of most is 0 if not given.
func readHalving(o *study.Options, spec study.Spec, factor int64) (h *halving, r, most int64) {
	h = &halving{metric: readMetric(o, spec, false), seed: spec.Seed}
	r = o.Whole("min_resource", 1, 1, maxResource)
	h.factor = int(o.Whole("reduction_factor", factor, 2, 1_000_000))
	most = o.Whole("max_resource", 0, 1, maxResource)
	h.least = int(o.Whole("min_trials", int64(h.factor), 1, study.MaxTrials))
	if most != 0 && most < r {
		o.Fail("pruner.options.max_resource", fmt.Sprint(most), "must be at least min_resource, "+fmt.Sprint(r), "")
	}
	return h, r, most
}

// add adds a bracket whose first rung is r.
func (h *halving) add(weight uint64, r, most int64) {
	b := bracket{weight: weight}
	for _, x := range resources(r, int64(h.factor), most) {
		b.rungs = append(b.rungs, rung{resource: x})
	}
	h.brackets = append(h.brackets, b)
	h.weights += weight
}

// resources returns r, rη, rη², … < most.
func resources(r, factor, most int64) (out []int64) {
	for ; r < most; r *= factor {
		out = append(out, r)
		if r > math.MaxInt64/factor {
			break
		}
	}
	return out
}

func pow(x uint64, n int64) uint64 {
	p := uint64(1)
	for range n {
		p *= x
	}
	return p
}

// climb notes the position of a trial on its ladder.
type climb struct {
	bracket int
	passed  []pass  // in order of rung
	best    float64 // since the last of them
}

// pass is a trial's first report on a rung.
type pass struct {
	rung int
	step int64
	loss float64
}

func (h *halving) begin(trial int) climb { return climb{bracket: h.bracketOf(trial)} }

// bracketOf draws a bracket in proportion to the weights.
func (h *halving) bracketOf(trial int) int {
	if len(h.brackets) == 1 {
		return 0
	}
	x, _ := bits.Mul64(stream.Derive(h.seed, Hyperband, uint64(trial)), h.weights)
	i := 0
	for x >= h.brackets[i].weight {
		x -= h.brackets[i].weight
		i++
	}
	return i
}

func (h *halving) read(n *climb, r study.Report) {
	x, ok := h.metric.loss(r)
	rungs := h.brackets[n.bracket].rungs
	k := len(rungs) - 1
	for k >= 0 && rungs[k].resource > r.Step {
		k--
	}
	if !ok || k < 0 {
		return
	}
	i := len(n.passed)
	for i > 0 && n.passed[i-1].rung > k {
		i--
	}
	switch {
	case i > 0 && n.passed[i-1].rung == k && n.passed[i-1].step <= r.Step:
	case i > 0 && n.passed[i-1].rung == k: // reported late, and now the first
		rungs[k].losses.remove(n.passed[i-1].loss)
		rungs[k].losses.add(x)
		n.passed[i-1].step, n.passed[i-1].loss = r.Step, x
	default:
		rungs[k].losses.add(x)
		n.passed = append(n.passed, pass{})
		copy(n.passed[i+1:], n.passed[i:])
		n.passed[i] = pass{k, r.Step, x}
		if i == len(n.passed)-1 {
			n.best = x
		}
	}
	if n.passed[len(n.passed)-1].rung == k {
		n.best = min(n.best, x)
	}
}

func (h *halving) withdraw(n *climb) {
	for _, p := range n.passed {
		h.brackets[n.bracket].rungs[p.rung].losses.remove(p.loss)
	}
}

func (h *halving) finish(*climb, study.Trial) {}

func (h *halving) judge(n *climb) Verdict {
	if len(n.passed) == 0 {
		return Verdict{}
	}
	last := n.passed[len(n.passed)-1]
	r := &h.brackets[n.bracket].rungs[last.rung]
	if r.losses.len() < h.least {
		return Verdict{}
	}
	better, room := r.losses.below(n.best), max(r.losses.len()/h.factor, 1)
	if better < room {
		return Verdict{}
	}
	return Verdict{Stop: true, Reason: fmt.Sprintf("%s %.6g since step %d is worse than that of %d of the %d trials on the rung of step %d, of which %d continue",
		h.metric.name, h.metric.flip(n.best), last.step, better, r.losses.len(), r.resource, room)}
}
