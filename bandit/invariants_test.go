package bandit_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/bkbtuner/bkb/bandit"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// Configuration and events determine a policy to the bit, for any number of workers and
// any calls of Next and Best in between.
func TestReplay(t *testing.T) {
	racetest.Alone(t)
	w := newWorld(9, 150, 2, 0.1)
	first, second := policies(t, w.arms), policies(t, w.arms)
	for name, p := range first {
		q := second[name]
		for range 40 {
			d := must(p.Next())
			if again := must(p.Next()); again != d {
				t.Fatalf("%s: asked twice\n%+v\n%+v", name, d, again)
			}
			if _, err := p.Best(); err != nil {
				t.Fatal(err)
			}
			y := w.reward(d.Arm, p.Steps())
			if err := p.Observe(d.Arm, y); err != nil {
				t.Fatal(err)
			}
			if err := q.Observe(d.Arm, y); err != nil {
				t.Fatal(err)
			}
		}
		if d, e := must(p.Next()), must(q.Next()); d != e {
			t.Errorf("%s: replayed\n%+v\n%+v", name, d, e)
		}
	}
}

// Another seed gives another first arm, and other inducing points.
func TestSeedMatters(t *testing.T) {
	w := newWorld(9, 150, 2, 0.1)
	firsts := map[int]bool{}
	for seed := range uint64(10) {
		c := basic(matern(0.3), 0.01)
		c.Seed = seed
		firsts[must(must(bandit.NewBKB(bkbConfig(c), w.arms)).Next()).Arm] = true
	}
	if len(firsts) < 5 {
		t.Errorf("10 seeds, %d first arms", len(firsts))
	}
}

// With arms in another order the same inputs are pulled, where no ties decide.
func TestPermutedArms(t *testing.T) {
	w := newWorld(10, 100, 2, 0.1)
	order := make([]int, 100)
	for i := range order {
		order[i] = 99 - i
	}
	p := must(bandit.NewGPUCB(basic(matern(0.3), 0.01), w.arms))
	q := must(bandit.NewGPUCB(basic(matern(0.3), 0.01), w.arms.Select(order)))
	first := must(p.Next()).Arm
	for range 40 {
		y := w.reward(first, p.Steps())
		if p.Observe(first, y) != nil || q.Observe(99-first, y) != nil {
			t.Fatal("refused")
		}
		first = must(p.Next()).Arm
		if other := must(q.Next()).Arm; other != 99-first {
			t.Fatalf("step %d: arms %d and %d", p.Steps(), first, 99-other)
		}
	}
}

// A refused call says why, and changes nothing.
func TestRefusedChangesNothing(t *testing.T) {
	racetest.Alone(t)
	w := newWorld(11, 80, 2, 0.1)
	notPending := func(err error) bool { return errors.Is(err, bandit.ErrNotPending) }
	bad := map[string]struct {
		call func(p bandit.Policy) error
		is   func(error) bool
	}{
		"NaN":           {func(p bandit.Policy) error { return p.Observe(0, math.NaN()) }, is[*bandit.ValueError]},
		"Inf in second": {func(p bandit.Policy) error { return p.Observe(0, 1, math.Inf(1)) }, is[*bandit.ValueError]},
		"huge":          {func(p bandit.Policy) error { return p.Observe(0, 1e200) }, is[*bandit.ValueError]},
		"no reward":     {func(p bandit.Policy) error { return p.Observe(0) }, is[*bandit.EmptyError]},
		"arm −1":        {func(p bandit.Policy) error { return p.Observe(-1, 1) }, is[*bandit.ArmError]},
		"arm 80":        {func(p bandit.Policy) error { return p.Pull(80) }, is[*bandit.ArmError]},
		"cancel":        {func(p bandit.Policy) error { return p.Cancel(0) }, notPending},
		"cancel arm 99": {func(p bandit.Policy) error { return p.Cancel(99) }, is[*bandit.ArmError]},
	}
	twins := policies(t, w.arms)
	for name, p := range policies(t, w.arms) {
		twin := twins[name]
		w.play(t, p, 20)
		w.play(t, twin, 20)
		for what, f := range bad {
			if err := f.call(p); err == nil || !f.is(err) {
				t.Errorf("%s: %s: %v (%T)", name, what, err, err)
			}
		}
		if !reflect.DeepEqual(must(p.Next()), must(twin.Next())) || p.Steps() != twin.Steps() {
			t.Errorf("%s: a refused call changed the decision", name)
		}
		if a, b := look(t, p, w.arms), look(t, twin, w.arms); !reflect.DeepEqual(a, b) {
			t.Errorf("%s: a refused call changed the posterior", name)
		}
		w.play(t, p, 10)
		w.play(t, twin, 10)
		if !reflect.DeepEqual(must(p.Next()), must(twin.Next())) {
			t.Errorf("%s: a refused call changed the future", name)
		}
	}
}

func TestRefusedConfigurations(t *testing.T) {
	arms, k := uniform(1, 10, 2), matern(0.3)
	c := bandit.BKBConfig{
		Config:   bandit.Config{NoiseVariance: -1, Ratio: 0.5, Workers: -1, Beta: bandit.Theory{Norm: -1, Delta: 2}},
		Sparsity: bandit.Sparsity{Oversampling: 0.5, Threshold: math.NaN()},
	}
	err := errors.Join(c.Config.Validate(), c.Sparsity.Validate())
	faults := 0
	for _, e := range flatten(err) {
		var v *bandit.ValueError
		var m *bandit.EmptyError
		if errors.As(e, &v) || errors.As(e, &m) {
			faults++
		}
	}
	if faults != 8 {
		t.Errorf("%d faults, want 8 at once: %v", faults, err)
	}
	if _, err := bandit.NewBKB(c, arms); err == nil {
		t.Error("accepted")
	}
	var dup *bandit.DuplicateArmError
	if _, err := bandit.NewGPUCB(basic(k, 1), arms.Select([]int{4, 5, 6, 5})); !errors.As(err, &dup) || dup.First != 1 || dup.Second != 3 {
		t.Errorf("duplicates: %v", err)
	}
	var empty *bandit.EmptyError
	if _, err := bandit.NewBBKB(bkbConfig(basic(k, 1)), arms.Slice(0, 0)); !errors.As(err, &empty) {
		t.Errorf("no arms: %v", err)
	}
	minus := &kernel.Pairwise[[]float64]{Name: "minus", Func: func(x, y []float64) float64 { return -x[0] * y[0] }}
	var psd *kernel.NotPSDError
	if _, err := bandit.NewBKB(bkbConfig(basic(minus, 1)), arms); !errors.As(err, &psd) {
		t.Errorf("kernel −xy: %v", err)
	}
	crooked := &kernel.Pairwise[[]float64]{Name: "crooked", Func: func(x, y []float64) float64 { return 1 + 0.1*(x[0]-y[1]) }}
	var asym *kernel.AsymmetryError
	if _, err := bandit.NewGPUCB(basic(crooked, 1), arms); !errors.As(err, &asym) {
		t.Errorf("asymmetric kernel: %v", err)
	}
}

func flatten(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, flatten(e)...)
		}
		return out
	}
	return []error{err}
}

// With constant rewards, and rewards of a huge or tiny scale, all numbers stay finite.
func TestConstantRewards(t *testing.T) {
	racetest.Alone(t)
	arms := uniform(1, 60, 2)
	for name, p := range policies(t, arms) {
		for _, y := range []float64{5, 0, -1e100} {
			for range 15 {
				d := must(p.Next())
				if err := p.Observe(d.Arm, y); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				if u := d.UCB + d.Gap + d.EffectiveDimension + d.InformationGain; math.IsNaN(u) || math.IsInf(u, 0) {
					t.Fatalf("%s: %+v", name, d)
				}
			}
		}
	}
}

// These arms are not vectors and can be identified only by position.
func TestNonEuclideanArms(t *testing.T) {
	type config struct{ letters []byte }
	var arms kernel.List[config]
	for _, a := range "abcdef" {
		for _, b := range "abcdef" {
			arms = append(arms, config{[]byte{byte(a), byte(b)}})
		}
	}
	k := &kernel.Pairwise[config]{Name: "letters", Sup: 1, Func: func(x, y config) float64 {
		same := 0.2
		for i := range x.letters {
			if x.letters[i] == y.letters[i] {
				same += 0.4
			}
		}
		return same
	}}
	c := basic(k, 0.01)
	for name, p := range map[string]bandit.Policy{
		"GP-UCB": must(bandit.NewGPUCB(c, arms)), "BKB": must(bandit.NewBKB(bkbConfig(c), arms)),
		"BBKB": must(bandit.NewBBKB(bkbConfig(c), arms)),
	} {
		late := 0
		for s := range 80 {
			d := must(p.Next())
			x := arms[d.Arm].letters
			y := 0.0
			if x[0] == 'c' {
				y++
			}
			if x[1] == 'e' {
				y++
			}
			if s >= 60 && y < 2 {
				late++
			}
			if err := p.Observe(d.Arm, y); err != nil {
				t.Fatal(err)
			}
		}
		if best := must(p.Best()); string(arms[best.Arm].letters) != "ce" || late > 12 {
			t.Errorf("%s: best %s, %d of the last 20 pulls elsewhere", name, arms[best.Arm].letters, late)
		}
	}
}

// Several workers give the same bits.
func TestWorkersChangeNothing(t *testing.T) {
	w := newWorld(13, 3000, 3, 0.1)
	for _, workers := range []int{2, 5} {
		one, many := basic(matern(0.3), 0.01), basic(matern(0.3), 0.01)
		many.Workers = workers
		p, q := must(bandit.NewGPUCB(one, w.arms)), must(bandit.NewGPUCB(many, w.arms))
		b, c := must(bandit.NewBKB(bkbConfig(one), w.arms)), must(bandit.NewBKB(bkbConfig(many), w.arms))
		for _, pair := range [][2]bandit.Policy{{p, q}, {b, c}} {
			w.play(t, pair[0], 15)
			w.play(t, pair[1], 15)
			if d, e := must(pair[0].Next()), must(pair[1].Next()); d != e {
				t.Errorf("%d workers:\n%+v\n%+v", workers, d, e)
			}
		}
	}
}
