package training_test

import (
	"strconv"
	"testing"

	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/learners/training"
)

// Every name of a search space is a hyper-parameter of learners/training. The values to
// start from, and both ends, make a valid estimator.
func TestSpaceIsOfTraining(t *testing.T) {
	for _, name := range []string{"avgsgd", "doublyonline", "falkon", "krr", "landweber", "log-falkon", "nystrom", "sgdrf"} {
		a, err := training.Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 50, 20000} {
			space, err := theory.Space(name, theory.Data{Rows: n, MedianDistance: 2.5})
			if err != nil {
				t.Fatal(err)
			}
			for end, at := range map[string]func(d theory.Dimension) float64{
				"start": func(d theory.Dimension) float64 { return d.Start },
				"low":   func(d theory.Dimension) float64 { return d.Low },
				"high":  func(d theory.Dimension) float64 { return d.High },
			} {
				v := training.Values{}
				for _, d := range space {
					switch {
					case d.Scale == theory.Choice:
						v[d.Name] = d.Choices[0]
					case d.Integer:
						v[d.Name] = strconv.Itoa(int(at(d)))
					default:
						v[d.Name] = strconv.FormatFloat(at(d), 'g', -1, 64)
					}
				}
				p := training.Problem{Rows: n, Dim: 3, Outputs: 1, Task: data.Regression, MedianDistance: 2.5}
				if name == "log-falkon" {
					p.Task = data.Classification
				}
				e, err := a.Estimator(v, p)
				if err == nil {
					err = e.Validate()
				}
				if err != nil {
					t.Errorf("%s, n = %d, %s %v: %v", name, n, end, v, err)
				}
			}
		}
	}
}
