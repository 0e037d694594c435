package training

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/sketch"
)

// theoryData is 1000 rows with d inputs.
func theoryData(t *testing.T, d int) *Data {
	t.Helper()
	var b strings.Builder
	rng := stream.New(41)
	for j := range d {
		fmt.Fprintf(&b, "x%d,", j)
	}
	b.WriteString("y\n")
	for range 1000 {
		sum := 0.0
		for range d {
			x := rng.NormFloat64()
			sum += math.Sin(2 * x)
			b.WriteString(num(x) + ",")
		}
		b.WriteString(num(sum+0.1*rng.NormFloat64()) + "\n")
	}
	out, err := Prepare(t.Context(), open(t, b.String(), dataset.Options{}), Split{Validation: 0.1, Seed: 1}, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The estimate of α is the slope of the exact effective dimension, from exact leverage scores,
// within 0.1. More inputs have a larger one.
func TestCapacityAgainstExactScores(t *testing.T) {
	before := 0.0
	for _, d := range []int{1, 3, 8} {
		train := theoryData(t, d).Train
		k, err := kernel.NewGaussian(math.Sqrt(2 * float64(d)))
		if err != nil {
			t.Fatal(err)
		}
		c, err := capacityOf(t.Context(), k, train, 5)
		if err != nil {
			t.Fatal(err)
		}
		n := float64(train.Len())
		at := func(lambda float64) float64 {
			v, err := sketch.EffectiveDimension(t.Context(), k, train, lambda)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.dimension(lambda); math.Abs(math.Log(got/v)) > math.Log(1.35) {
				t.Errorf("d = %d: N(%.2g) = %.4g, exactly %.4g", d, lambda, got, v)
			}
			return math.Log(v)
		}
		want := (at(1/n) - at(1/math.Sqrt(n))) / (0.5 * math.Log(n))
		if math.Abs(c.alpha-want) > 0.1 || c.alpha <= before {
			t.Errorf("d = %d: α = %.3f, exactly %.3f, and %.3f for fewer inputs", d, c.alpha, want, before)
		}
		before = c.alpha
	}
}

// The settings of every learner are those of the formulas in the papers, written out here.
func TestTheoryAgainstThePapers(t *testing.T) {
	d := theoryData(t, 3)
	p, err := NewProblem(t.Context(), d, 1)
	if err != nil {
		t.Fatal(err)
	}
	k, _, err := NewKernel("gaussian", Median, p)
	if err != nil {
		t.Fatal(err)
	}
	c, err := capacityOf(t.Context(), k, d.Train, 1)
	if err != nil {
		t.Fatal(err)
	}
	largest := 0.0
	y, err := data.Targets(t.Context(), d.Train)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range y {
		largest = max(largest, math.Abs(v))
	}
	const n = 1000.0
	for _, r := range []float64{0.5, 0.75, 1} {
		s := 2*r + c.alpha
		lambda := math.Exp(-math.Log(n) / s)
		for name, want := range map[string]map[string]float64{
			"sgdrf": {
				"batch-size": math.Ceil(math.Exp(2 * r / s * math.Log(n))), "step-size": 1,
				"passes":          math.Round(math.Ceil(math.Exp(2*r/s*math.Log(n))) * math.Ceil(1/lambda) / n),
				"random-features": min(2*math.Ceil(2*math.Exp((1+c.alpha*(2*r-1))/s*math.Log(n))), n),
			},
			"krr":          {"lambda": lambda},
			"nystrom":      {"lambda": lambda, "centers": min(math.Ceil((1+c.dimension(lambda))*math.Log(80/lambda)), n)},
			"falkon":       {"lambda": lambda, "centers": min(math.Ceil((1+c.dimension(lambda))*math.Log(80/lambda)), n), "iterations": math.Ceil(math.Log(n*math.Pow(2*largest+3, 2)) + 5)},
			"landweber":    {"iterations": math.Ceil(1 / lambda)},
			"avgsgd":       {"passes": 1, "step-size": 0.25 * math.Exp((1/c.alpha-1-2*r/c.alpha)/(2*r/c.alpha+1)*math.Log(n))},
			"doublyonline": {"passes": 1, "step-size": r / (4 * 2 * 4 * (r + 1)) * math.Exp(-s/(s+1)*math.Log(n))},
		} {
			a, err := Find(name)
			if err != nil {
				t.Fatal(err)
			}
			v, notes, err := a.theoretical(t.Context(), Values{"kernel": "gaussian"}, d.Train, p, n, r, 1)
			if err != nil {
				t.Fatal(err)
			}
			for parameter, x := range want {
				got, err := strconv.ParseFloat(v[parameter], 64)
				if err != nil || math.Abs(got-x) > 1e-5*x && !(parameter == "random-features" && math.Abs(got-x) <= 2) {
					t.Errorf("%s, r = %g: %s is %q, want %g", name, r, parameter, v[parameter], x)
				}
			}
			if text := strings.Join(notes, "\n"); !strings.Contains(text, fmt.Sprintf("r = %g", r)) || !strings.Contains(text, fmt.Sprintf("α = %.3g", c.alpha)) || !strings.Contains(text, "(20") {
				t.Errorf("%s: %s", name, text)
			}
		}
	}
	// Centres follow from a given λ, and notes say what was given.
	f := falkonAlgorithm
	own, notes, err := f.theoretical(t.Context(), Values{"lambda": "1e-3", "iterations": "7"}, d.Train, p, n, 0.5, 1)
	if want := math.Ceil((1 + c.dimension(1e-3)) * math.Log(80/1e-3)); err != nil || own["centers"] != strconv.Itoa(int(want)) {
		t.Errorf("λ = 1e-3: %v, want %g centres: %v", own, want, err)
	}
	if got := notes[len(notes)-1]; got != "the theorem does not speak of the given iterations 7, lambda 1e-3" {
		t.Errorf("notes end with %q", got)
	}
	// The capacity is that of mapped rows.
	q := p
	q.Metric = &Metric{L: times(p.Dim, 0.1)}
	if own, _, err := f.theoretical(t.Context(), Values{"metric": "full"}, d.Train, q, n, 0.5, 1); err != nil || own["lambda"] == "" {
		t.Errorf("%v, %v", own, err)
	} else if plain, _, _ := f.theoretical(t.Context(), Values{}, d.Train, q, n, 0.5, 1); own["lambda"] == plain["lambda"] {
		t.Errorf("λ = %s of rows a tenth as far, and %s", own["lambda"], plain["lambda"])
	}
	// Hard problems take several passes, t = n^{α/(2rα+1)} in the paper's α.
	const hard = 0.1
	a := averagedSGD
	v, _, err := a.theoretical(t.Context(), Values{}, d.Train, p, n, hard, 1)
	want := math.Round(math.Exp((1/c.alpha)/(2*hard/c.alpha+1)*math.Log(n)) / n)
	if err != nil || v["passes"] != strconv.Itoa(int(want)) || want < 2 {
		t.Errorf("hard: %v passes, want %g: %v", v["passes"], want, err)
	}
}

// A training has the settings of theory, except those given, with all of its steps.
func TestTrainByTheory(t *testing.T) {
	d := theoryData(t, 3)
	run := Run{Values: Values{"batch-size": "50"}, Regularity: 0.5, Options: learners.Options{Seed: 1}}
	a := sgdRF
	fitted, err := a.Train(t.Context(), d, run)
	if err != nil {
		t.Fatal(err)
	}
	used := a.Used(fitted.Values, fitted.Problem, fitted.Model)
	if used["batch-size"] != "50" || used["step-size"] != "1" || used["averaging"] != "none" {
		t.Errorf("used %v", used)
	}
	if passes, _ := strconv.Atoi(used["passes"]); fitted.Iterations != passes || fitted.Step != 0 {
		t.Errorf("%d iterations of %d, and step %d was chosen", fitted.Iterations, passes, fitted.Step)
	}
	var parameter *learners.ParameterError
	run.Regularity = 0.3
	if _, err := a.Train(t.Context(), d, run); !errors.As(err, &parameter) || parameter.Parameter != "r" {
		t.Errorf("r = 0.3: %v", err)
	}
	var value *ValueError
	run.Values, run.Regularity = Values{"kernel": "linear"}, 0.5
	if _, err := a.Train(t.Context(), d, run); !errors.As(err, &value) || value.What != "kernel" {
		t.Errorf("a kernel without a bound: %v", err)
	}
}
