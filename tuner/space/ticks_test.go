package space_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/space/spacetest"
)

func TestTicks(t *testing.T) {
	sp, err := space.New(
		space.NewFloat("lr", 1e-5, 0.1).WithScale(space.Log),
		space.NewFloat("momentum", 0, 1),
		space.NewFloat("dropout", 0, 0.5).WithStep(space.Float(0.1)),
		space.NewInt("batch", 16, 512).WithScale(space.Log),
		space.NewInt("layers", 1, 3),
		space.NewCategorical("kind", space.String("a"), space.String("b")),
		space.NewFloat("keep", 0.9, 0.999).WithScale(space.ReverseLog),
		space.NewFloat("tiny", 1e-12, 3e-12),
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"1e-05 0.0001 0.001 0.01 0.1", "0 0.2 0.4 0.6 0.8 1", "0 0.1 0.2 0.3 0.4 0.5", "20 50 100 200 500", "1 2 3", "a b",
	}
	for i, text := range want {
		var got []string
		for _, tick := range sp.Ticks(i, 6) {
			got = append(got, fmt.Sprint(tick.Value))
		}
		if strings.Join(got, " ") != text {
			t.Errorf("coordinate %d: %v, want %s", i, got, text)
		}
	}
	for i := len(want); i < sp.Dim(); i++ {
		if ticks := sp.Ticks(i, 6); len(ticks) < 3 {
			t.Errorf("coordinate %d: %v", i, ticks)
		}
	}
}

// TestTicksAreValues checks ticks of random spaces. Each is a legal value at its
// coordinate, they ascend, and there are not too many.
func TestTicksAreValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sp := spacetest.Spaces(5).Draw(t, "space")
		most := rapid.IntRange(2, 12).Draw(t, "most")
		u := make([]float64, sp.Dim())
		for i, axis := range sp.Axes() {
			ticks := sp.Ticks(i, most)
			if len(ticks) == 0 || len(ticks) > most {
				t.Fatalf("%s: %d ticks, want 1 to %d", axis.Parameter, len(ticks), most)
			}
			last := math.Inf(-1)
			for _, tick := range ticks {
				if tick.At <= last || tick.At < 0 || tick.At > 1 {
					t.Fatalf("%s: tick at %v after %v", axis.Parameter, tick.At, last)
				}
				last = tick.At
				if axis.Conditional {
					continue
				}
				u[i] = tick.At
				c, err := sp.Decode(u)
				if err != nil {
					t.Fatal(err)
				}
				if v, _ := c.Get(axis.Parameter); v != tick.Value && axis.Levels > 0 && axis.Levels < 1e6 {
					t.Fatalf("%s: the coordinate %v is that of %v, not of %v", axis.Parameter, tick.At, v, tick.Value)
				}
			}
		}
	})
}
