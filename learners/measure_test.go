package learners_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/learners"
)

func TestMeasuresByHand(t *testing.T) {
	f, y := []float64{1, 2, 3, 5}, []float64{1, 1, 5, 4}
	for name, want := range map[string]float64{
		"mse": 1.5, "rmse": math.Sqrt(1.5), "mae": 1,
		"relative-error":   math.Sqrt((0 + 1 + 4.0/25 + 1.0/16) / 4),
		"normalised-error": math.Sqrt(6 / 12.75), "1-r2": 6 / 12.75,
		"pinball": 0.5, "huber": (0 + 0.5 + 1.5 + 0.5) / 4,
	} {
		if got := (learners.Scoring{}).Measure(name)(f, y, 1); math.Abs(got-want) > 1e-14 {
			t.Errorf("%s = %v, want %v", name, got, want)
		}
	}
	// The mean is taken for each output, here of the columns (1, 3) and (2, 5), with
	// means 3 and 2.5.
	if got, want := (learners.Scoring{}).Measure("normalised-error")(f, y, 2), math.Sqrt(6/(4+4+2.25+2.25)); math.Abs(got-want) > 1e-14 {
		t.Errorf("normalised error of two outputs %v, want %v", got, want)
	}
	if v := 1 - (learners.Scoring{}).Measure("1-r2")([]float64{2, 2}, []float64{2, 2}, 1); v != 1 {
		t.Errorf("R² of constant targets that are met: %v", v)
	}
	if v := (learners.Scoring{}).Measure("normalised-error")([]float64{2, 1}, []float64{2, 2}, 1); !math.IsInf(v, 1) {
		t.Errorf("normalised error of constant targets that are missed: %v", v)
	}
	if (learners.Scoring{}).Measure("no such") != nil {
		t.Error("a measure without a name")
	}
	for _, name := range learners.MeasureNames() {
		if (learners.Scoring{Link: learners.Softmax}).Measure(name) == nil {
			t.Errorf("%s is listed but not known", name)
		}
	}
}

func TestClassError(t *testing.T) {
	if got := learners.ClassError([]float64{0.1, -0.2, 0, 3}, []float64{1, 1, -1, -1}, 1); got != 0.5 {
		t.Errorf("two classes: %v", got)
	}
	f := []float64{1, 0, 0, 0.2, 0.1, 0.2, -1, -2, -3}
	y := []float64{1, -1, -1, -1, -1, 1, -1, 1, -1}
	if got := learners.ClassError(f, y, 3); math.Abs(got-2.0/3) > 1e-15 {
		t.Errorf("three classes: %v, want 2/3: of equal outputs the first counts", got)
	}
}

func TestBalancedAccuracy(t *testing.T) {
	// Of three rows of −1 two are right, and of one row of +1 none.
	if got := 1 - (learners.Scoring{}).Measure("1-balanced-accuracy")([]float64{-1, -2, 3, -4}, []float64{-1, -1, -1, 1}, 1); math.Abs(got-1.0/3) > 1e-15 {
		t.Errorf("two classes: %v, want 1/3", got)
	}
	if got := 1 - (learners.Scoring{}).Measure("1-balanced-accuracy")([]float64{-1, 2}, []float64{-1, -1}, 1); got != 0.5 {
		t.Errorf("rows of one class: %v, want 1/2", got)
	}
	f := []float64{1, 0, 0, 1, 0, 0, 0, 0, 1}
	y := []float64{1, -1, -1, -1, 1, -1, -1, -1, 1}
	if got := 1 - (learners.Scoring{}).Measure("1-balanced-accuracy")(f, y, 3); math.Abs(got-2.0/3) > 1e-15 {
		t.Errorf("three classes: %v, want 2/3", got)
	}
}

func TestCalibrationError(t *testing.T) {
	logit := func(p float64) float64 { return math.Log(p / (1 - p)) }
	// Nine rows are sure to 0.9 and right in eight cases. Three are sure to 0.6, for the
	// other class, and right in one case.
	var f, y []float64
	for i := range 9 {
		f, y = append(f, logit(0.9)), append(y, 1)
		if i == 0 {
			y[0] = -1
		}
	}
	for i := range 3 {
		f, y = append(f, logit(0.4)), append(y, 1)
		if i == 0 {
			y[9] = -1
		}
	}
	want := (math.Abs(9*0.9-8) + math.Abs(3*0.6-1)) / 12
	if got := (learners.Scoring{Link: learners.Logistic}).Measure("calibration-error")(f, y, 1); math.Abs(got-want) > 1e-12 {
		t.Errorf("two classes: %v, want %v", got, want)
	}
	if got := (learners.Scoring{Link: learners.Softmax}).Measure("calibration-error")([]float64{50, 0, 0, 0, 50, 0}, []float64{1, -1, -1, 1, -1, -1}, 3); math.Abs(got-0.5) > 1e-12 {
		t.Errorf("sure, and right in half of the cases: %v", got)
	}
	for _, f := range []float64{math.NaN(), math.Inf(1)} {
		if got := (learners.Scoring{Link: learners.Softmax}).Measure("calibration-error")([]float64{f, 0, 0}, []float64{1, -1, -1}, 3); !math.IsNaN(got) {
			t.Errorf("of the output %v it is %v", f, got)
		}
	}
}

// Labels drawn from the probabilities themselves have a small calibration error.
func TestCalibrationOfTruth(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	const n, c = 40000, 4
	f, y := normals(n*c, rng), slices.Repeat([]float64{-1}, n*c)
	p := learners.Softmax.Probabilities(f, c)
	for i := range n {
		u, k := rng.Float64(), 0
		for ; k < c-1 && u >= p[i*c+k]; k++ {
			u -= p[i*c+k]
		}
		y[i*c+k] = 1
	}
	if got := (learners.Scoring{Link: learners.Softmax}).Measure("calibration-error")(f, y, c); got > 0.02 {
		t.Errorf("the calibration error is %v", got)
	}
}

// TestAUC counts all pairs.
func TestAUC(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 1))
	for round := range 200 {
		n := 2 + rng.IntN(40)
		f, y := make([]float64, n), make([]float64, n)
		for i := range f {
			f[i] = math.Round(rng.NormFloat64() * float64(1+round%5)) // ties
			y[i] = float64(2*rng.IntN(2) - 1)
		}
		wins, count := 0.0, 0.0
		for i := range n {
			for j := range n {
				if y[i] > 0 && y[j] < 0 {
					count++
					switch {
					case f[i] > f[j]:
						wins++
					case f[i] == f[j]:
						wins += 0.5
					}
				}
			}
		}
		got := learners.AUC(f, y, 1)
		if count == 0 {
			if !math.IsNaN(got) {
				t.Fatalf("round %d: one class only: %v", round, got)
			}
		} else if math.Abs(got-wins/count) > 1e-13 {
			t.Fatalf("round %d: %v, want %v", round, got, wins/count)
		}
	}
	// One against all, it is the mean of 1, 1 and 0.
	f, y := []float64{1, 0, 1, 0, 1, 0}, []float64{1, -1, -1, -1, 1, 1}
	if got := learners.AUC(f, y, 3); math.Abs(got-2.0/3) > 1e-15 {
		t.Errorf("three outputs: %v", got)
	}
}

// TestLogLoss compares with the loss computed from probabilities, also where these are
// rounded to 1.
func TestLogLoss(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	for _, c := range []int{1, 3} {
		const n = 30
		f, y := normals(n*c, rng), make([]float64, n*c)
		for i := range y {
			y[i] = -1
			if c == 1 && rng.IntN(2) == 0 || i%c == rng.IntN(c) && c > 1 {
				y[i] = 1
			}
		}
		for _, link := range []learners.Link{learners.Expected, learners.Logistic, learners.Softmax} {
			p := link.Probabilities(f, c)
			loss, brier, classes := 0.0, 0.0, max(c, 2)
			for i := range n {
				k := 0
				if c == 1 {
					k = int(y[i]+1) / 2
				}
				for j := range c {
					if c > 1 && y[i*c+j] > y[i*c+k] {
						k = j
					}
				}
				loss -= math.Log(max(p[i*classes+k], 1e-15)) / n
				for j := range classes {
					e := p[i*classes+j]
					if j == k {
						e--
					}
					brier += e * e / n
				}
			}
			if got := (learners.Scoring{Link: link}).Measure("log-loss")(f, y, c); math.Abs(got-loss) > 1e-12*(1+loss) {
				t.Errorf("c = %d, link %q: %v, want %v", c, link, got, loss)
			}
			if got := (learners.Scoring{Link: link}).Measure("brier")(f, y, c); math.Abs(got-brier) > 1e-12 {
				t.Errorf("c = %d: Brier %v, want %v", c, got, brier)
			}
		}
	}
	if got, want := (learners.Scoring{Link: learners.Logistic}).Measure("log-loss")([]float64{40}, []float64{1}, 1), math.Exp(-40); math.Abs(got-want) > 1e-3*want {
		t.Errorf("log(1 + exp(−40)) = %v", got)
	}
	if got, want := (learners.Scoring{Link: learners.Logistic}).Measure("log-loss")([]float64{-1000}, []float64{1}, 1), -math.Log(1e-15); math.Abs(got-want) > 1e-12 {
		t.Errorf("a sure mistake costs %v, want %v", got, want)
	}
}

// Integer weights are rows that occur as often, for every measure. A row of weight 0
// does not count, even if its output is not a number.
func TestWeightedMeasures(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, c := range []int{1, 3} {
		const n = 40
		f, y, weights := make([]float64, n*c), make([]float64, n*c), make([]float64, n)
		for i := range f {
			f[i], y[i] = rng.NormFloat64(), -1
		}
		var rf, ry []float64
		for i := range n {
			if k := rng.IntN(c + 1); k < c {
				y[i*c+k] = 1
			}
			weights[i] = float64(rng.IntN(4))
			for range int(weights[i]) {
				rf, ry = append(rf, f[i*c:][:c]...), append(ry, y[i*c:][:c]...)
			}
		}
		for _, name := range learners.MeasureNames() {
			s := learners.Scoring{Link: learners.Logistic, Quantile: 0.3, Delta: 0.7}
			want, plain := s.Measure(name)(rf, ry, c), s.Measure(name)(f, y, c)
			s.Weights = weights
			if got := s.Measure(name)(f, y, c); !(math.Abs(got-want) <= 1e-12*math.Abs(want)) {
				t.Errorf("%s, c = %d: %v, repeated rows have %v", name, c, got, want)
			}
			if plain == want {
				t.Errorf("%s, c = %d: weights have no effect", name, c)
			}
		}
	}
}

// Measures scale with the data, also where squares over- or underflow.
func TestMeasuresOfExtremes(t *testing.T) {
	f, y := []float64{1, 2, 3, 4}, []float64{1.5, 2, 2, 5}
	for _, name := range []string{"rmse", "1-r2", "normalised-error"} {
		m := (learners.Scoring{Weights: []float64{1, 2, 0, 3}}).Measure(name)
		want := m(f, y, 1)
		for _, e := range []int{-1020, -900, -500, 500, 900, 1020} {
			big := func(a []float64) (out []float64) {
				for _, v := range a {
					out = append(out, math.Ldexp(v, e))
				}
				return out
			}
			scaled := want
			if name == "rmse" {
				scaled = math.Ldexp(want, e)
			}
			if got := m(big(f), big(y), 1); got != scaled {
				t.Errorf("%s at 2^%d: %v, want %v", name, e, got, scaled)
			}
		}
	}
}
