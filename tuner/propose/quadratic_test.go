package propose

import (
	"math"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/tuner/study"
)

// A rotated ellipsoid is a narrow valley to the model, and a quadratic explains it. The same
// studies without quadratics end far higher.
func TestQuadraticOfEllipsoid(t *testing.T) {
	racetest.Alone(t)
	task := ellipsoid(t)
	gain := 0.0
	seeds := racetest.Size(2, 4)
	for seed := range uint64(seeds) {
		run := func(options string) float64 {
			return search(t, task, study.Component{Name: BKB, Options: options}, seed+1, []int{60})[0]
		}
		with, without := run(""), run(`{"quadratic": "off"}`)
		t.Logf("seed %d: regret %.3g, and %.3g without", seed+1, with, without)
		gain += math.Log10(without/with) / float64(seeds)
	}
	if gain < 0.5 {
		t.Errorf("the regret is %.2g decades lower", gain)
	}
}
