package cells

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/space/spacetest"
)

// allCells is the slow twin of cells. It tries all values of all parameters, parents first,
// and keeps the configurations that the space accepts.
func allCells(sp *space.Space, points int, perParameter map[string]int) []string {
	type partial []space.Assignment
	found := []partial{nil}
	parameters := sp.Parameters()
	for done := make(map[string]bool); len(done) < len(parameters); {
		for _, p := range parameters {
			if done[p.Name] || slices.ContainsFunc(p.When, func(w space.Condition) bool { return !done[w.Parent] }) {
				continue
			}
			done[p.Name] = true
			l, err := newLevels(p, perParameter[p.Name], points)
			if err != nil {
				panic(err)
			}
			var next []partial
			for _, c := range found {
				if !isActive(p, space.NewConfig(c...)) {
					next = append(next, c)
					continue
				}
				for i := range l.n {
					next = append(next, append(slices.Clip(c), space.Assignment{Name: p.Name, Value: l.at(i)}))
				}
			}
			found = next
		}
	}
	var out []string
	for _, c := range found {
		out = append(out, space.NewConfig(c...).String())
	}
	slices.Sort(out)
	return out
}

func isActive(p space.Parameter, c space.Config) bool {
	return !slices.ContainsFunc(p.When, func(w space.Condition) bool {
		v, ok := c.Get(w.Parent)
		return !ok || !slices.Contains(w.Values, v)
	})
}

func TestCellsAreAllCombinations(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sp := spacetest.Spaces(6).Draw(t, "space")
		points, perParameter := rapid.IntRange(1, 3).Draw(t, "points"), make(map[string]int)
		for _, p := range sp.Parameters() {
			if p.Type != space.TypeCategorical && p.Type != space.TypeConstant && rapid.Bool().Draw(t, "thinned") {
				perParameter[p.Name] = rapid.IntRange(1, 4).Draw(t, "levels")
			}
		}
		c, err := Of(sp, points, perParameter)
		if err != nil || c.total > 3000 {
			return
		}
		var got []string
		for i := range c.total {
			config := c.At(i)
			if err := sp.Validate(config); err != nil {
				t.Fatalf("cell %d: %v", i, err)
			}
			got = append(got, config.String())
		}
		slices.Sort(got)
		if want := allCells(sp, points, perParameter); !slices.Equal(got, want) {
			t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// Without thinning, the grid of a finite space is the space.
func TestCellsOfFiniteSpaces(t *testing.T) {
	finite := 0
	rapid.Check(t, func(t *rapid.T) {
		sp := spacetest.Spaces(8).Draw(t, "space")
		if n := sp.Cardinality(); n < Most {
			finite++
			c, err := Of(sp, 10, nil)
			if err != nil || float64(c.total) != n {
				t.Fatalf("%v cells, %v, of %v configurations", c, err, n)
			}
		}
	})
	t.Logf("%d finite spaces", finite)
}

func TestHugeGrids(t *testing.T) {
	racetest.Alone(t)
	var wide, chained []space.Parameter
	for i := range 200 {
		name := strings.Repeat("p", i+1)
		if len(name) <= space.MaxNameBytes {
			wide = append(wide, space.NewFloat(name, 0, 1))
		}
	}
	for i := range 26 { // every pair interlocks
		p := space.NewBool(string(rune('a' + i)))
		chained = append(chained, p)
	}
	for i := range 26 {
		for j := range i {
			chained = append(chained, space.NewBool(string(rune('a'+i))+string(rune('a'+j))).
				Given(string(rune('a'+i)), space.Bool(true)).Given(string(rune('a'+j)), space.Bool(true)))
		}
	}
	for name, test := range map[string]struct {
		parameters []space.Parameter
		want       string
	}{
		"wide":        {wide, "more than 2⁵³ cells"},
		"all int64":   {[]space.Parameter{space.NewInt("n", -1<<63, 1<<63-1)}, "more than 2⁵³ cells"},
		"interlocked": {chained, "interlock"},
	} {
		sp, err := space.New(test.parameters...)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Of(sp, 10, nil); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAGridOfALargeRangeIsNotListed(t *testing.T) {
	sp, err := space.New(space.NewInt("n", -1<<50, 1<<50), space.NewFloat("x", 0, 1e9).WithStep(space.Float(1e-3)).Given("n", space.Int(7)))
	if err != nil {
		t.Fatal(err)
	}
	c, err := Of(sp, 10, nil)
	if err != nil || c.total != 1<<51+1+1e12 {
		t.Fatalf("%d cells, %v", c.total, err)
	}
	for _, i := range []uint64{0, 1, 1<<50 + 6, 1<<50 + 7, 1<<50 + 8, c.total - 1} {
		if err := sp.Validate(c.At(i)); err != nil {
			t.Errorf("cell %d: %v", i, err)
		}
	}
}
