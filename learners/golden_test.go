package learners_test

import (
	_ "embed"
	"encoding/json"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/avgsgd"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/landweber"
	"github.com/bkbtuner/bkb/learners/learnerstest"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/learners/nystrom"
	"github.com/bkbtuner/bkb/learners/sgdrf"
	"github.com/bkbtuner/bkb/sketch"
)

//go:embed testdata/golden.json
var goldenJSON []byte

// TestGolden compares with numbers that testdata/golden.py computed by NumPy and SciPy.
// They do not depend on this code.
func TestGolden(t *testing.T) {
	var g struct {
		Origin  string
		Outputs int `json:"outputs_per_row"`
		Lambda  float64
		Lengths []float64 `json:"length_scales"`
		Huber   struct{ Delta float64 }
		Fits    struct{ Quantile, Smoothing float64 } `json:"quantile"`
		SGDRF   struct {
			Features, Batch, Passes int
			Seed                    uint64
			Step, Decay             float64
		}
		Landweber struct {
			Iterations int
			Step       float64
		}
		AvgSGD struct {
			Passes int
			Step   float64
		}
		X, Y, Signs, Weights, Test, Inclusion []float64
		Centers                               []int
		Want                                  map[string][]float64
	}
	if err := json.Unmarshal(goldenJSON, &g); err != nil {
		t.Fatal(err)
	}
	t.Log(g.Origin)
	k, err := kernel.NewGaussian(g.Lengths...)
	if err != nil {
		t.Fatal(err)
	}
	matern, err := kernel.NewMatern32(g.Lengths...)
	if err != nil {
		t.Fatal(err)
	}
	rows := func(v []float64) *kernel.Points[float64] {
		return kernel.NewPoints(len(v)/len(g.Lengths), len(g.Lengths), v)
	}
	train := learnerstest.Memory(t, rows(g.X), g.Y, g.Outputs)
	classes := learnerstest.Memory(t, rows(g.X), g.Signs, g.Outputs)
	test, centers := kernel.FromRows(rows(g.Test)), learnerstest.Fixed(g.Centers)
	compared := map[string]bool{}
	compare := func(name string, got []float64, tolerance float64) {
		t.Helper()
		learnerstest.RequireClose(t, name, got, g.Want[name], tolerance)
		compared[name] = true
	}

	exact := krr.Params{Kernel: matern, Lambda: g.Lambda}
	least := falkon.Params{Kernel: k, Lambda: g.Lambda, Centers: len(centers), Sampler: centers, Iterations: 200, Tolerance: 1e-13}
	losses := least // whose tolerance is that of a gradient
	losses.Tolerance = 1e-11
	class := falkon.LogisticParams{Params: falkon.Params{Kernel: k, Lambda: g.Lambda, Centers: len(centers), Sampler: centers, Iterations: 200, Tolerance: 1e-11}, Steps: 200}
	softmax := class
	softmax.Multiclass = falkon.SoftmaxLoss
	direct := nystrom.Params{Kernel: k, Lambda: g.Lambda, Centers: len(centers), Sampler: centers}
	iterated := direct
	iterated.Solver, iterated.Iterations, iterated.Tolerance = nystrom.CG, 500, 1e-14
	unregularised := direct
	unregularised.Lambda = 0
	sgd := sgdrf.Params{
		Kernel: k, Family: sketch.Fourier, Features: g.SGDRF.Features, BatchSize: g.SGDRF.Batch, Passes: g.SGDRF.Passes,
		StepSize: g.SGDRF.Step, StepDecay: g.SGDRF.Decay, Lambda: g.Lambda, Sampling: minibatch.Cycle, Averaging: sgdrf.None,
	}
	descent := landweber.Params{Kernel: matern, StepSize: g.Landweber.Step, Iterations: g.Landweber.Iterations}
	averaged := avgsgd.Params{Kernel: matern, StepSize: g.AvgSGD.Step, Passes: g.AvgSGD.Passes, Sampling: minibatch.Cycle}
	weighted := learners.Options{Weights: g.Weights, Seed: g.SGDRF.Seed}
	for _, c := range []struct {
		name      string
		fits      []learners.Estimator
		o         learners.Options
		tolerance float64
	}{
		{"krr", []learners.Estimator{exact}, weighted, 1e-10},
		{"nystrom", []learners.Estimator{direct, iterated, least}, learners.Options{}, 1e-9},
		{"nystrom weighted", []learners.Estimator{direct, iterated, least}, weighted, 1e-9},
		{"nystrom unregularised", []learners.Estimator{unregularised}, learners.Options{}, 1e-7},
		{"logistic", []learners.Estimator{class}, weighted, 1e-8},
		{"softmax", []learners.Estimator{softmax}, weighted, 1e-8},
		{"huber", []learners.Estimator{falkon.RobustParams{Params: losses, Loss: learners.HuberLoss, Delta: g.Huber.Delta, Steps: 200}}, weighted, 1e-8},
		{"quantile", []learners.Estimator{falkon.RobustParams{Params: losses, Loss: learners.QuantileLoss, Quantile: g.Fits.Quantile, Smoothing: g.Fits.Smoothing, Steps: 200}}, weighted, 1e-8},
		{"sgdrf", []learners.Estimator{sgd}, weighted, 1e-11},
		{"landweber", []learners.Estimator{descent}, learners.Options{}, 1e-10},
		{"landweber weighted", []learners.Estimator{descent}, weighted, 1e-10},
		{"avgsgd", []learners.Estimator{averaged}, learners.Options{}, 1e-11},
	} {
		data := train
		if c.name == "logistic" || c.name == "softmax" {
			data = classes
		}
		for _, e := range c.fits {
			m, err := e.Fit(t.Context(), data, c.o)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			compare(c.name, predict(t, m, test), c.tolerance)
		}
	}

	left, err := exact.LeaveOneOut(t.Context(), train, weighted)
	if err != nil {
		t.Fatal(err)
	}
	compare("krr leave-one-out", left, 1e-10)
	scores, err := sketch.LeverageScores(t.Context(), k, train, g.Lambda)
	if err != nil {
		t.Fatal(err)
	}
	compare("leverage scores", scores, 1e-11)
	gen, err := sketch.NewGenerator(k, train.Rows().Select(centers), g.Inclusion, g.Lambda, train.Len())
	if err != nil {
		t.Fatal(err)
	}
	if scores, err = gen.Scores(t.Context(), train, 1); err != nil {
		t.Fatal(err)
	}
	compare("dictionary scores", scores, 1e-11)
	phi, err := sketch.NewFourier(k, len(g.Lengths), g.SGDRF.Features, g.SGDRF.Seed)
	if err != nil {
		t.Fatal(err)
	}
	z := make([]float64, test.Len()*g.SGDRF.Features)
	if err := phi.Apply(z, rows(g.Test)); err != nil {
		t.Fatal(err)
	}
	compare("features", z, 1e-14)
	for name := range g.Want {
		if !compared[name] {
			t.Errorf("%s is not compared", name)
		}
	}
}
