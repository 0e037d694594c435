package propose

import (
	"slices"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/tuner/propose/labtest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/study"
)

func TestLexicographicOrder(t *testing.T) {
	spec := labtest.SpecOf(labtest.Parse(t, `{"k": {"type": "categorical", "values": ["a", "b"]}, "x": {"type": "float", "low": 1, "high": 100, "scale": "log"}, "n": {"type": "int", "low": 1, "high": 2, "when": {"k": "b"}}}`), 3)
	l, p := newLab(t, spec), must(t, study.Component{Name: Grid, Options: `{"order": "lexicographic", "points": 3, "levels": {"n": 2}}`}, spec)
	for l.ask(p, 2) > 0 {
	}
	var got []string
	for s := range l.S.All(0) {
		got = append(got, s.Config.String())
	}
	want := []string{
		"k=a x=1", "k=a x=10", "k=a x=100",
		"k=b n=1 x=1", "k=b n=1 x=10", "k=b n=1 x=100", "k=b n=2 x=1", "k=b n=2 x=10", "k=b n=2 x=100",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// Every cell comes once, in an order of the seed. Configurations that a user has tried are
// skipped.
func TestGridEnds(t *testing.T) {
	orders := make(map[string]bool)
	for seed := range uint64(5) {
		spec := labtest.SpecOf(labtest.Parse(t, labtest.Spaces["finite"]), seed) // 3·10·5 cells
		l, p := newLab(t, spec), must(t, study.Component{Name: Grid}, spec)
		known := space.NewConfig(space.Assignment{Name: "a", Value: space.String("v")},
			space.Assignment{Name: "b", Value: space.Int(4)}, space.Assignment{Name: "c", Value: space.Float(0.5)})
		l.Do(study.Enqueue{Config: known})
		for l.ask(p, 7) > 0 {
		}
		seen := make(map[string]bool)
		var order []string
		for s := range l.S.All(0) {
			if seen[s.Config.String()] {
				t.Errorf("seed %d: %s twice", seed, s.Config)
			}
			seen[s.Config.String()] = true
			order = append(order, s.Config.String())
		}
		if len(seen) != 150 {
			t.Errorf("seed %d: %d of 150 configurations", seed, len(seen))
		}
		orders[strings.Join(order, "\n")] = true
	}
	if len(orders) != 5 {
		t.Errorf("%d orders for 5 seeds", len(orders))
	}
}
