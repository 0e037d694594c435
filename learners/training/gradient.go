package training

import (
	"slices"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/avgsgd"
	"github.com/bkbtuner/bkb/learners/doublyonline"
	"github.com/bkbtuner/bkb/learners/landweber"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/learners/sgdrf"
	"github.com/bkbtuner/bkb/sketch"
)

var samplingParameter = Parameter{
	Name: "sampling", Kind: Choice, Default: string(minibatch.Replacement),
	Choices: []string{string(minibatch.Replacement), string(minibatch.Reshuffle), string(minibatch.Cycle)},
	Doc:     "how rows are drawn",
}

// families are the kinds of random features, by the names of the command line.
var families = map[string]sketch.Family{
	"orthogonal": sketch.Orthogonal, "fourier": sketch.Fourier, "fourier-cosine": sketch.FourierCosine,
	"fastfood": sketch.Fastfood, "relu": sketch.ReLU, "gaussian-sketch": sketch.GaussianSketch,
}

// family returns the kind of features, which is empty for Auto.
func (r reader) family() sketch.Family { return families[r.text("features")] }

var featuresParameter = Parameter{
	Name: "features", Kind: Choice, Default: Auto, Auto: "orthogonal up to 512 inputs, fourier beyond, or what the kernel has",
	Choices: []string{"orthogonal", "fourier", "fourier-cosine", "fastfood", "relu", "gaussian-sketch"},
	Doc:     "the kind of random features (relu for --kernel arc-cosine, gaussian-sketch for linear)",
}

var sgdRF = Algorithm{
	Name:    "sgdrf",
	Summary: "stochastic gradient descent on random features",
	About: `SGD with random features takes mini-batches and computes M random features of their rows
when needed. It takes O(Mb) memory, and O(nMd) time for a pass (Carratino, 2020, chapter
3). Step, mini-batch and passes regularise, and √n features are enough.`,
	Parameters: slices.Concat(withKernel(
		featuresParameter,
		Parameter{Name: "random-features", Kind: Count, Positive: true, Default: Auto, Auto: "4√n, from 256 to 16384", Doc: "the number of random features M"},
		Parameter{Name: "batch-size", Kind: Count, Positive: true, Default: Auto, Auto: "√n", Doc: "the rows of a mini-batch b"},
		Parameter{Name: "step-size", Kind: Real, Positive: true, Default: Auto, Auto: "step-scale times the best stable step γ*", Doc: "the step size γ"},
		Parameter{Name: "step-scale", Kind: Real, Positive: true, Default: Auto, Auto: "1 for mini-batches of √n and more, 0.1 for 10 and less", Doc: "the step size in units of γ*, below 2"},
		Parameter{Name: "step-decay", Kind: Real, Default: "0", Doc: "θ in γt^−θ (0.5 is better for --loss quantile)"},
		Parameter{Name: "passes", Kind: Count, Positive: true, Default: "5", Doc: "the number of passes over the data"},
		Parameter{Name: "lambda", Kind: Real, Default: "0", Doc: "the ridge λ, per sample (not needed with early stopping)"},
		Parameter{Name: "averaging", Kind: Choice, Default: Auto, Auto: "tail for more than 10 passes", Choices: []string{"none", "tail", "all"}, Doc: "which iterates make the model"},
		samplingParameter,
	), lossParameters),
	build: func(r reader, p Problem) (learners.Estimator, error) {
		k, err := r.kernel(p)
		averaging := sgdrf.Averaging(r.text("averaging"))
		if averaging == Auto {
			averaging = sgdrf.AveragingAuto
		}
		return sgdrf.Params{
			Kernel: k, Family: r.family(), Features: r.count("random-features", 0), BatchSize: r.count("batch-size", 0),
			StepSize: r.real("step-size", 0), StepScale: r.real("step-scale", 0), StepDecay: r.real("step-decay", 0),
			Passes: r.count("passes", 0), Lambda: r.real("lambda", 0), Averaging: averaging,
			Sampling: minibatch.Sampling(r.text("sampling")),
		}, err
	},
}

var landweberAlgorithm = Algorithm{
	Name:    "landweber",
	Summary: "gradient descent with early stopping, exact kernel matrix",
	About: `Landweber iteration, also called L²-boosting, is gradient descent in the kernel's space.
The number of iterations takes the place of λ (Carratino, 2020, §2.4). A step evaluates
all n² kernel values. With --patience the validation error ends it.`,
	Parameters: withKernel(
		Parameter{Name: "step-size", Kind: Real, Positive: true, Default: Auto, Auto: "just below n/‖K‖", Doc: "the step size γ"},
		Parameter{Name: "iterations", Kind: Count, Positive: true, Default: "200", Doc: "the largest number of iterations t"},
		precisionParameter, distancesParameter,
	),
	build: func(r reader, p Problem) (learners.Estimator, error) {
		k, err := r.kernel(p)
		return landweber.Params{Kernel: k, StepSize: r.real("step-size", 0), Iterations: r.count("iterations", 0), Precision: r.precision(), Distances: r.distances()}, err
	},
}

const linearModel = "none"

var averagedSGD = Algorithm{
	Name:    "avgsgd",
	Summary: "averaged stochastic gradient descent over several passes",
	About: `Averaged SGD steps on one row at a time, with a large constant step. The average removes
the noise of the steps. On hard problems several passes are better than one
(Pillaud-Vivien, Rudi and Bach, 2018). With --kernel none the model is linear. With
--random-features it uses M random features. Otherwise it uses the kernel itself, and a
step costs n evaluations.`,
	Parameters: append(slices.Clone(kernelOrNone),
		Parameter{Name: "random-features", Kind: Count, Default: "0", Doc: "the number of random features M, or 0 for the kernel itself"},
		featuresParameter,
		Parameter{Name: "step-size", Kind: Real, Positive: true, Default: Auto, Auto: "1/(4R²), where R² is the largest ‖Φ(x)‖²", Doc: "the step size γ"},
		Parameter{Name: "passes", Kind: Count, Positive: true, Default: "5", Doc: "the number of passes over the data"},
		Parameter{Name: "averaging", Kind: Choice, Default: string(avgsgd.All), Choices: []string{string(avgsgd.All), string(avgsgd.None)}, Doc: "which iterates make the model"},
		samplingParameter,
	),
	build: func(r reader, p Problem) (learners.Estimator, error) {
		e := avgsgd.Params{
			Features: r.count("random-features", 0), Family: r.family(), StepSize: r.real("step-size", 0),
			Passes: r.count("passes", 0), Averaging: avgsgd.Averaging(r.text("averaging")), Sampling: minibatch.Sampling(r.text("sampling")),
		}
		linear := r.text("kernel") == linearModel
		switch {
		case linear && e.Features > 0:
			return nil, r.a.refused("random-features", r.text("random-features"), "0 for kernel = none; name the kernel of the features")
		case e.Features == 0 && e.Family != "":
			return nil, r.a.refused("features", r.text("features"), "random-features of 1 or more with it")
		case linear:
			return e, nil
		}
		k, err := r.kernel(p)
		e.Kernel = k
		return e, err
	},
}

// kernelOrNone are the parameters of the kernel, which may be absent.
var kernelOrNone = func() []Parameter {
	parameters := withKernel()
	parameters[0].Choices = append(slices.Clone(kernels), linearModel)
	parameters[0].Doc = "the kernel, or none for a linear model"
	return parameters
}()

var doublyOnline = Algorithm{
	Name:    "doublyonline",
	Summary: "online learning with new random features in every step",
	About: `Doubly online learning takes one row and a few new random features in each step. It
stores neither rows nor features, only their seed (Lin and Rosasco, 2019). It suits
endless streams. On a fixed data set sgdrf learns more in less time.`,
	Parameters: withKernel(
		Parameter{
			Name: "features", Kind: Choice, Default: Auto, Auto: "fourier, or what the kernel has",
			Choices: []string{"fourier", "fourier-cosine", "relu", "gaussian-sketch"}, Doc: "the kind of random features",
		},
		Parameter{Name: "step-features", Kind: Count, Positive: true, Default: "16", Doc: "the number B of new features in each step"},
		Parameter{Name: "step-size", Kind: Real, Positive: true, Default: Auto, Auto: "T^−½ for T steps", Doc: "the step size η"},
		Parameter{Name: "step-decay", Kind: Real, Default: "0", Doc: "θ in ηt^−θ"},
		Parameter{Name: "lambda", Kind: Real, Default: "0", Doc: "the ridge λ"},
		Parameter{Name: "passes", Kind: Count, Positive: true, Default: "1", Doc: "the number of passes over the data"},
		Parameter{
			Name: "sampling", Kind: Choice, Default: string(minibatch.Reshuffle),
			Choices: samplingParameter.Choices, Doc: samplingParameter.Doc,
		},
	),
	build: func(r reader, p Problem) (learners.Estimator, error) {
		k, err := r.kernel(p)
		return doublyonline.Params{
			Kernel: k, Family: r.family(), Features: r.count("step-features", 0), StepSize: r.real("step-size", 0),
			StepDecay: r.real("step-decay", 0), Lambda: r.real("lambda", 0), Passes: r.count("passes", 0),
			Sampling: minibatch.Sampling(r.text("sampling")),
		}, err
	},
}
