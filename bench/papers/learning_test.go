package papers

import (
	"testing"

	"github.com/bkbtuner/bkb/bench/experiment"
	"github.com/bkbtuner/bkb/internal/datatest"
)

// Few features lose much, and many gain little.
func TestFeaturesNeeded(t *testing.T) {
	r := quick(t, "fig3.1", experiment.Env{Seed: 1, Only: []string{"generator"}})
	rows := table(t, r, "features").Rows
	few, root, many := rows[0][4].(float64), rows[4][4].(float64), rows[len(rows)-1][4].(float64)
	if few-root < 0.05 || root-many > 0.03 {
		t.Errorf("errors %.3f, %.3f at √n, %.3f", few, root, many)
	}
}

// The best step grows with the mini-batch.
func TestBestSteps(t *testing.T) {
	r := quick(t, "fig3.2", experiment.Env{Seed: 1, Only: []string{"generator"}})
	best := table(t, r, "best").Rows
	if one, root := best[0][3].(float64), best[2][3].(float64); one >= root {
		t.Errorf("best step %v for b = 1, %v for b = √n", one, root)
	}
}

// FALKON's tenth iteration is better than the others after twenty.
func TestSolvers(t *testing.T) {
	r := quick(t, "fig4.1", experiment.Env{Seed: 1, Only: []string{"generator"}})
	rows := table(t, r, "iterations")
	falkon := one(t, rows, "t = 10", "solver", "FALKON")
	for _, other := range []string{"gradient descent", "SGD"} {
		if e := one(t, rows, "t = 20", "solver", other); falkon > e+0.005 {
			t.Errorf("FALKON %.4f, %s %.4f", falkon, other, e)
		}
	}
}

// Errors fall with the iterations, for either kind of centres.
func TestCenters(t *testing.T) {
	r := quick(t, "fig5.4", experiment.Env{Seed: 1, Only: []string{"generator"}})
	for _, row := range table(t, r, "iterations").Rows {
		if first, last := row[4].(float64), row[9].(float64); last > first {
			t.Errorf("%v: %.4f after one iteration, %.4f after 20", row[2], first, last)
		}
	}
	r = quick(t, "fig5.3", experiment.Env{Seed: 1, Only: []string{"generator"}})
	if rows := table(t, r, "lambda").Rows; len(rows) != 10 || rows[9][4].(float64) < rows[5][4].(float64) {
		t.Errorf("λ = 0.1 is not too large: %v", rows)
	}
}

// At M = n FALKON is exact regression.
func TestExactness(t *testing.T) {
	r := quick(t, "exact", experiment.Env{Seed: 1, Data: datatest.Folder(t), Only: []string{"kin40k"}})
	rows := table(t, r, "errors").Rows
	if ratio := rows[len(rows)-1][7].(float64); ratio < 0.999 || ratio > 1.001 {
		t.Errorf("ratio %v at M = n", ratio)
	}
	if ratio := rows[1][7].(float64); ratio < 1.05 {
		t.Errorf("ratio %v with few centres", ratio)
	}
}

// The error falls with the steps under every rule.
func TestRates(t *testing.T) {
	r := quick(t, "online", experiment.Env{Seed: 1, Repeats: 4})
	for _, row := range table(t, r, "slopes").Rows {
		if slope := row[1].(float64); !(slope < -0.25) {
			t.Errorf("%v: slope %v", row[0], slope)
		}
	}
}

// More rows need more steps.
func TestStepsOfAveraging(t *testing.T) {
	r := quick(t, "averaged", experiment.Env{Seed: 1, Only: []string{"reshuffle"}})
	for _, row := range table(t, r, "slopes").Rows {
		if slope := row[2].(float64); !(slope > 0.4) {
			t.Errorf("α = %v: slope %v", row[1], slope)
		}
	}
}

func TestPassesOnMNIST(t *testing.T) {
	r := quick(t, "averaged-mnist", experiment.Env{Seed: 1, Data: datatest.Folder(t)})
	for _, row := range table(t, r, "passes").Rows {
		if wrong := row[3].(float64); wrong > 0.4 {
			t.Errorf("n = %v: class error %v", row[0], wrong)
		}
	}
}

// Every learner learns with the settings of theory.
func TestTimesOfLearners(t *testing.T) {
	r := quick(t, "table4.1", experiment.Env{Seed: 1})
	rows := table(t, r, "slopes").Rows
	if len(rows) != len(scaledLearners()) {
		t.Errorf("%d learners", len(rows))
	}
	for _, row := range rows {
		if wrong := row[4].(float64); wrong > 0.3 {
			t.Errorf("%v: class error %v", row[0], wrong)
		}
	}
}
