package training

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/avgsgd"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/doublyonline"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/landweber"
	"github.com/bkbtuner/bkb/learners/minibatch"
	"github.com/bkbtuner/bkb/learners/nystrom"
	"github.com/bkbtuner/bkb/learners/sgdrf"
	"github.com/bkbtuner/bkb/sketch"
)

// These are the choices whose estimators take the empty word for them.
const (
	squared           = "squared"
	conjugateGradient = "cg"
	pivoted           = "pivoted"
	direct            = "direct"
	oneVsRest         = "one-vs-rest"
	linearModel       = "none" // as the kernel
)

// samplers are the samplers of centres by name.
var samplers = []struct {
	name    string
	sampler sketch.Sampler
}{
	{Auto, learners.Automatic{}},
	{"uniform", nil},
	{"rpcholesky", sketch.RPCholesky{}},
	{"bless", sketch.BLESS{}},
	{"bless-r", sketch.BLESSR{}},
	{"squeak", sketch.SQUEAK{}},
	{"recursive", sketch.RecursiveRLS{}},
	{"two-pass", sketch.TwoPass{}},
	{"exact", sketch.ExactRLS{}},
}

// SamplerNamed returns the sampler with this name, or nil and true for uniform.
func SamplerNamed(name string) (s sketch.Sampler, ok bool) {
	for _, s := range samplers {
		if s.name == name {
			return s.sampler, true
		}
	}
	return nil, false
}

// families are the kinds of random features, by the names of the command line.
var families = map[string]sketch.Family{
	"orthogonal": sketch.Orthogonal, "fourier": sketch.Fourier, "fourier-cosine": sketch.FourierCosine,
	"fastfood": sketch.Fastfood, "relu": sketch.ReLU, "gaussian-sketch": sketch.GaussianSketch,
}

// common are the parameters that several algorithms have.
var common = []Parameter{
	{Name: "kernel", Kind: Choice, Choices: kernels, Default: "gaussian", Doc: "the kernel"},
	{Name: lengthScaleName, Kind: Lengths, Default: Median, Auto: "learned", Doc: "the length scale, or one for each input as in 0.5,1,2 (auto learns them and λ)"},
	{Name: relevanceName, Kind: Choice, Choices: []string{equalRelevance, learnedRelevance}, Default: equalRelevance, Doc: "relevance of inputs"},
	{Name: metricName, Kind: Choice, Choices: []string{diagonal, fullMetric}, Default: diagonal, Doc: "the metric of inputs"},
	{Name: "degree", Kind: Count, Default: "3", Doc: "the degree of the polynomial kernel"},
	{Name: "offset", Kind: Real, Default: "1", Doc: "the offset of the polynomial kernel"},
	{Name: "lambda", Kind: Real, Default: Auto, Auto: "κ²/n or learned, or better on validation rows", Doc: "the ridge λ, per sample"},
	{Name: "centers", Kind: Count, Positive: true, Default: Auto, Auto: "20√n up to 1000, then 10√n, and 2000 or more for learned length scales", Doc: "the number of centres M"},
	{Name: "sampler", Kind: Choice, Default: Auto, Doc: "how centres are chosen (auto is uniform, or rpcholesky where groups of rows are rare)"},
	{Name: "sampler-lambda", Kind: Real, Positive: true, Default: Auto, Auto: "100λ", Doc: "the λ of leverage scores, for samplers that have them"},
	{Name: "factorization", Kind: Choice, Default: pivoted, Choices: []string{pivoted, "cholesky", "qr", "eigen"}, Doc: "how K_MM is factored"},
	{Name: "epsilon", Kind: Real, Positive: true, Default: Auto, Auto: "1e-13, or 1e-6 in single precision", Doc: "the relative part of K_MM that counts as 0"},
	{Name: "precision", Kind: Choice, Choices: []string{"float64", "float32"}, Default: "float64", Doc: "the precision of kernel values while fitting"},
	{Name: "distances", Kind: Choice, Choices: []string{"automatic", "direct", "expanded"}, Default: "automatic", Doc: "distances (expanded rounds more)"},
	{Name: "loss", Kind: Choice, Default: squared, Choices: []string{squared, string(learners.HuberLoss), string(learners.QuantileLoss)}, Doc: "the loss of numbers"},
	{Name: "delta", Kind: Real, Positive: true, Default: Auto, Auto: "1.345 times the spread of targets", Doc: "the residual from which the Huber loss is linear"},
	{Name: "quantile", Kind: Real, Positive: true, Default: "0.5", Doc: "the quantile τ of the quantile loss"},
	{
		Name: "features", Kind: Choice, Default: Auto, Auto: "orthogonal up to 512 inputs, fourier beyond, or what the kernel has",
		Choices: []string{"orthogonal", "fourier", "fourier-cosine", "fastfood", "relu", "gaussian-sketch"},
		Doc:     "the kind of random features (relu for --kernel arc-cosine, gaussian-sketch for linear)",
	},
	{Name: "passes", Kind: Count, Positive: true, Default: "5", Doc: "the number of passes over the data"},
	{Name: "sampling", Kind: Choice, Default: string(minibatch.Replacement), Choices: []string{string(minibatch.Replacement), string(minibatch.Reshuffle), string(minibatch.Cycle)}, Doc: "how rows are drawn"},
}

const kernelNames = "kernel length-scale relevance degree offset "

// with returns the named parameters, which are own or else common ones.
func with(names string, own ...Parameter) (out []Parameter) {
	for name := range strings.FieldsSeq(names) {
		named := func(p Parameter) bool { return p.Name == name }
		from := own
		if !slices.ContainsFunc(own, named) {
			from = common
		}
		p := from[slices.IndexFunc(from, named)]
		if name == "sampler" {
			for _, s := range samplers {
				p.Choices = append(p.Choices, s.name)
			}
		}
		out = append(out, p)
	}
	return out
}

// plentyCenters is the largest number of centres that is twice 10√n.
const plentyCenters = 1000

// centers returns M, or 0 where a sampler finds it and no length scales are learned. Learned length scales
// have many centres, because λ is learned for rows that are all centres, and a kernel with short ones needs
// them.
func (r reader) centers(p Problem) int {
	auto, few := 0.0, 10*math.Sqrt(float64(p.Rows))
	switch {
	case r.learns():
		auto = max(float64(learnFits[len(learnFits)-1].rows), few)
	case !FindsCenters(r.text("sampler")):
		auto = max(few, min(2*few, plentyCenters))
	}
	return r.count("centers", min(p.Rows, int(math.Ceil(auto))))
}

// FindsCenters reports whether a sampler by name finds the number of centres itself, by leverage scores.
func FindsCenters(sampler string) bool {
	return !slices.Contains([]string{Auto, "uniform", "rpcholesky"}, sampler)
}

func (r reader) sampler() sketch.Sampler {
	s, _ := SamplerNamed(r.text("sampler"))
	return s
}

func (r reader) precision() kernel.Precision {
	return map[string]kernel.Precision{"float64": kernel.Float64, "float32": kernel.Float32}[r.text("precision")]
}

func (r reader) distances() kernel.Distances {
	return map[string]kernel.Distances{"automatic": kernel.AutoDistances, "direct": kernel.DirectDistances, "expanded": kernel.ExpandedDistances}[r.text("distances")]
}

// family returns the kind of features, which is empty for Auto.
func (r reader) family() sketch.Family { return families[r.text("features")] }

// word returns a choice, which is empty for zero.
func word[T ~string](r reader, name, zero string) T {
	if text := r.text(name); text != zero {
		return T(text)
	}
	return ""
}

// kappaSqOf returns κ² where the kernel has one, else 1.
func kappaSqOf(k kernel.Kernel) float64 {
	if b := k.Bound(); b > 0 && !math.IsInf(b, 1) {
		return b
	}
	return 1
}

// falkon returns what both kinds of FALKON have.
func (r reader) falkon(k kernel.Kernel, p Problem) falkon.Params {
	return falkon.Params{
		Kernel: k, Lambda: r.real("lambda", 0), Centers: r.centers(p), Sampler: r.sampler(), SamplerLambda: r.real("sampler-lambda", 0),
		Iterations: r.count("iterations", 0), Tolerance: r.real("tolerance", 0), Epsilon: r.real("epsilon", 0),
		Factorization: word[falkon.Factorization](r, "factorization", pivoted), Precision: r.precision(), Distances: r.distances(),
	}
}

var falkonAlgorithm = Algorithm{
	Name:    "falkon",
	Summary: "kernel ridge regression on M centres by preconditioned conjugate gradients",
	About: `FALKON solves kernel ridge regression on M centres by a preconditioned iteration. It
takes O(nMt + M³) time and O(M²) memory, so that it suits millions of rows (Carratino,
2020, chapter 4). Centres are uniform, or by randomly pivoted Cholesky where that leaves
clearly less of the kernel, which is where groups of rows are rare. With --sampler bless
they have large leverage scores (§5.3). With --metric full inputs are multiplied by a
matrix that is learned from gradients, unless the median distance or learned length
scales have less error on validation rows (Radhakrishnan and others, 2024). With --loss
huber or quantile it takes Newton steps of up to --iterations iterations each.`,
	Parameters: with(
		kernelNames+"metric lambda centers sampler sampler-lambda solver iterations tolerance factorization epsilon precision distances loss delta quantile",
		Parameter{Name: "lambda", Kind: Real, Positive: true, Default: Auto, Auto: "κ²/n or learned, or better on validation rows", Doc: "the ridge λ, per sample"},
		Parameter{Name: "solver", Kind: Choice, Default: conjugateGradient, Choices: []string{conjugateGradient, string(falkon.Gradient)}, Doc: "the solver"},
		Parameter{Name: "iterations", Kind: Count, Positive: true, Default: "100", Doc: "the largest number of iterations t"},
		Parameter{Name: "tolerance", Kind: Real, Positive: true, Default: "1e-7", Doc: "the relative residual that ends it"},
	),
	build: func(r reader, k kernel.Kernel, p Problem) (learners.Estimator, error) {
		e := r.falkon(k, p)
		e.Solver = word[falkon.Solver](r, "solver", conjugateGradient)
		if r.learns() || r.text(metricName) == fullMetric {
			e.Lambda = r.real("lambda", r.ridge(k, p))
		}
		return e, nil
	},
}

var logFalkon = Algorithm{
	Name:    "log-falkon",
	Summary: "kernel logistic regression on M centres, for classes with probabilities",
	About: `Logistic FALKON is FALKON for classes, with probabilities. It fits the logistic loss by
Newton's method with a falling λ, and FALKON's preconditioned iteration computes each
step (Marteau-Ferey, Bach and Rudi, 2019).`,
	Parameters: with(
		kernelNames+"metric lambda centers sampler sampler-lambda multiclass iterations steps decay tolerance factorization epsilon precision distances",
		Parameter{Name: "lambda", Kind: Real, Positive: true, Default: Auto, Auto: "κ²/n, or better on validation rows", Doc: "the ridge λ, per sample"},
		Parameter{Name: "multiclass", Kind: Choice, Default: string(falkon.SoftmaxLoss), Choices: []string{string(falkon.SoftmaxLoss), oneVsRest}, Doc: "how more than two classes are learned (softmax for all together)"},
		Parameter{Name: "iterations", Kind: Count, Positive: true, Default: Auto, Auto: "as many as λ needs to fall, and 10", Doc: "the largest number of Newton steps"},
		Parameter{Name: "steps", Kind: Count, Positive: true, Default: "20", Doc: "the largest number of conjugate gradient iterations in a Newton step"},
		Parameter{Name: "decay", Kind: Real, Positive: true, Default: "100", Doc: "the factor by which λ falls from a Newton step to the next, above 1"},
		Parameter{Name: "tolerance", Kind: Real, Positive: true, Default: "1e-3", Doc: "the norm of the gradient that ends the fit"},
	),
	build: func(r reader, k kernel.Kernel, p Problem) (learners.Estimator, error) {
		if p.Task != data.Classification {
			return nil, r.a.refused("target", string(p.Task), "classes; for numbers use falkon")
		}
		return falkon.LogisticParams{
			Params: r.falkon(k, p), Multiclass: word[falkon.Multiclass](r, "multiclass", oneVsRest), Steps: r.count("steps", 0), Decay: r.real("decay", 0),
		}, nil
	},
}

var sgdRF = Algorithm{
	Name:    "sgdrf",
	Summary: "stochastic gradient descent on random features",
	About: `SGD with random features takes mini-batches and computes M random features of their rows
when needed. It takes O(Mb) memory, and O(nMd) time for a pass (Carratino, 2020, chapter
3). Step, mini-batch and passes regularise, and √n features are enough.`,
	Parameters: with(
		kernelNames+"features random-features batch-size step-size step-scale step-decay passes lambda averaging sampling loss delta quantile",
		Parameter{Name: "random-features", Kind: Count, Positive: true, Default: Auto, Auto: "4√n, from 256 to 16384", Doc: "the number of random features M"},
		Parameter{Name: "batch-size", Kind: Count, Positive: true, Default: Auto, Auto: "√n", Doc: "the rows of a mini-batch b"},
		Parameter{Name: "step-size", Kind: Real, Positive: true, Default: Auto, Auto: "step-scale times the best stable step γ*", Doc: "the step size γ"},
		Parameter{Name: "step-scale", Kind: Real, Positive: true, Default: Auto, Auto: "1 for mini-batches of √n and more, 0.1 for 10 and less", Doc: "the step size in units of γ*, below 2"},
		Parameter{Name: "step-decay", Kind: Real, Default: "0", Doc: "θ in γt^−θ (0.5 for --loss quantile)"},
		Parameter{Name: "lambda", Kind: Real, Default: "0", Doc: "the ridge λ, per sample (not needed with early stopping)"},
		Parameter{Name: "averaging", Kind: Choice, Default: Auto, Auto: "tail for more than 10 passes", Choices: []string{"none", "tail", "all"}, Doc: "which iterates make the model"},
	),
	build: func(r reader, k kernel.Kernel, _ Problem) (learners.Estimator, error) {
		return sgdrf.Params{
			Kernel: k, Family: r.family(), Features: r.count("random-features", 0), BatchSize: r.count("batch-size", 0),
			StepSize: r.real("step-size", 0), StepScale: r.real("step-scale", 0), StepDecay: r.real("step-decay", 0), Passes: r.count("passes", 0),
			Lambda: r.real("lambda", 0), Averaging: word[sgdrf.Averaging](r, "averaging", Auto), Sampling: minibatch.Sampling(r.text("sampling")),
		}, nil
	},
}

var ridgeRegression = Algorithm{
	Name:    "krr",
	Summary: "kernel ridge regression, exact",
	About: `Kernel ridge regression solves (K + λnI)c = y exactly. It takes n² numbers of memory and
n³/3 operations, so it suits up to about ten thousand rows. --metric full is as in falkon.`,
	Parameters: with(
		kernelNames+"metric lambda max-rows",
		Parameter{Name: "max-rows", Kind: Count, Positive: true, Default: strconv.Itoa(krr.DefaultMaxRows), Doc: "the largest number of rows n, which take 8n² bytes"},
	),
	build: func(r reader, k kernel.Kernel, p Problem) (learners.Estimator, error) {
		return krr.Params{Kernel: k, Lambda: r.real("lambda", r.ridge(k, p)), MaxRows: r.count("max-rows", 0)}, nil
	},
}

var nystromAlgorithm = Algorithm{
	Name:    "nystrom",
	Summary: "kernel ridge regression on M centres, direct or by plain iterations",
	About: `Nyström kernel ridge regression on M centres works without FALKON's preconditioner. The
direct solver takes O(nM² + M³) time (Carratino, 2020, §4.1). The other solvers are
gradient descent, SGD and conjugate gradients. Gradient descent with λ = 0 is NYTRO, in
which early stopping takes the place of λ.`,
	Parameters: with(
		kernelNames+"metric lambda centers sampler sampler-lambda solver step-size batch-size iterations tolerance precision distances",
		Parameter{Name: "lambda", Kind: Real, Default: Auto, Auto: "κ²/n, or better on validation rows, or 0 for gradient and sgd", Doc: "the ridge λ, per sample"},
		Parameter{Name: "centers", Kind: Count, Positive: true, Default: Auto, Auto: "20√n to 10√n", Doc: "the centres M"},
		Parameter{Name: "solver", Kind: Choice, Default: direct, Choices: []string{direct, string(nystrom.Gradient), string(nystrom.SGD), string(nystrom.CG)}, Doc: "the solver"},
		Parameter{Name: "step-size", Kind: Real, Positive: true, Default: Auto, Auto: "nearly the largest stable step", Doc: "the step size γ of gradient and sgd"},
		Parameter{Name: "batch-size", Kind: Count, Positive: true, Default: Auto, Auto: "√n", Doc: "the rows of a mini-batch of sgd"},
		Parameter{Name: "iterations", Kind: Count, Positive: true, Default: Auto, Auto: "100, or 10 passes for sgd", Doc: "the largest number of iterations t"},
		Parameter{Name: "tolerance", Kind: Real, Positive: true, Default: "1e-10", Doc: "the relative residual that ends cg"},
	),
	build: func(r reader, k kernel.Kernel, p Problem) (learners.Estimator, error) {
		solver, lambda := word[nystrom.Solver](r, "solver", direct), 0.0
		if solver == nystrom.Direct || solver == nystrom.CG {
			lambda = r.ridge(k, p)
		}
		return nystrom.Params{
			Kernel: k, Lambda: r.real("lambda", lambda), Centers: r.centers(p), Sampler: r.sampler(), SamplerLambda: r.real("sampler-lambda", 0),
			Solver: solver, StepSize: r.real("step-size", 0), BatchSize: r.count("batch-size", 0),
			Iterations: r.count("iterations", 0), Tolerance: r.real("tolerance", 0), Precision: r.precision(), Distances: r.distances(),
		}, nil
	},
}

var landweberAlgorithm = Algorithm{
	Name:    "landweber",
	Summary: "gradient descent with early stopping, exact kernel matrix",
	About: `Landweber iteration, also called L²-boosting, is gradient descent in the kernel's space.
The number of iterations takes the place of λ (Carratino, 2020, §2.4). A step evaluates
all n² kernel values. With --patience the validation error ends it.`,
	Parameters: with(
		kernelNames+"step-size iterations precision distances",
		Parameter{Name: "step-size", Kind: Real, Positive: true, Default: Auto, Auto: "just below n/‖K‖", Doc: "the step size γ"},
		Parameter{Name: "iterations", Kind: Count, Positive: true, Default: "200", Doc: "the largest number of iterations t"},
	),
	build: func(r reader, k kernel.Kernel, _ Problem) (learners.Estimator, error) {
		return landweber.Params{Kernel: k, StepSize: r.real("step-size", 0), Iterations: r.count("iterations", 0), Precision: r.precision(), Distances: r.distances()}, nil
	},
}

var averagedSGD = Algorithm{
	Name:    "avgsgd",
	Summary: "averaged stochastic gradient descent over several passes",
	About: `Averaged SGD steps on one row at a time, with a large constant step. The average removes
the noise of the steps. On hard problems several passes are better than one
(Pillaud-Vivien, Rudi and Bach, 2018). With --kernel none the model is linear. With
--random-features it uses M random features. Otherwise it uses the kernel itself, and a
step costs n evaluations.`,
	Parameters: with(
		kernelNames+"random-features features step-size passes averaging sampling",
		Parameter{Name: "kernel", Kind: Choice, Choices: append(slices.Clone(kernels), linearModel), Default: "gaussian", Doc: "the kernel, or none for a linear model"},
		Parameter{Name: "random-features", Kind: Count, Default: "0", Doc: "the number of random features M, or 0 for the kernel itself"},
		Parameter{Name: "step-size", Kind: Real, Positive: true, Default: Auto, Auto: "1/(4R²), where R² is the largest ‖Φ(x)‖²", Doc: "the step size γ"},
		Parameter{Name: "averaging", Kind: Choice, Default: string(avgsgd.All), Choices: []string{string(avgsgd.All), string(avgsgd.None)}, Doc: "which iterates make the model"},
	),
	build: func(r reader, k kernel.Kernel, _ Problem) (learners.Estimator, error) {
		e := avgsgd.Params{
			Kernel: k, Features: r.count("random-features", 0), Family: r.family(), StepSize: r.real("step-size", 0),
			Passes: r.count("passes", 0), Averaging: avgsgd.Averaging(r.text("averaging")), Sampling: minibatch.Sampling(r.text("sampling")),
		}
		switch {
		case k == nil && e.Features > 0:
			return nil, r.a.refused("random-features", r.text("random-features"), "0 for kernel = none; name the kernel of the features")
		case e.Features == 0 && e.Family != "":
			return nil, r.a.refused("features", r.text("features"), "random-features of 1 or more with it")
		}
		return e, nil
	},
}

var doublyOnline = Algorithm{
	Name:    "doublyonline",
	Summary: "online learning with new random features in every step",
	About: `Doubly online learning takes one row and a few new random features in each step. It
stores neither rows nor features, only their seed (Lin and Rosasco, 2019). It suits
endless streams. On a fixed data set sgdrf learns more in less time.`,
	Parameters: with(
		kernelNames+"features step-features step-size step-decay lambda passes sampling",
		Parameter{Name: "features", Kind: Choice, Default: Auto, Auto: "fourier, or what the kernel has", Choices: []string{"fourier", "fourier-cosine", "relu", "gaussian-sketch"}, Doc: "the kind of random features"},
		Parameter{Name: "step-features", Kind: Count, Positive: true, Default: "16", Doc: "the number B of new features in each step"},
		Parameter{Name: "step-size", Kind: Real, Positive: true, Default: Auto, Auto: "T^−½ for T steps", Doc: "the step size η"},
		Parameter{Name: "step-decay", Kind: Real, Default: "0", Doc: "θ in ηt^−θ"},
		Parameter{Name: "lambda", Kind: Real, Default: "0", Doc: "the ridge λ"},
		Parameter{Name: "passes", Kind: Count, Positive: true, Default: "1", Doc: "the number of passes over the data"},
		Parameter{Name: "sampling", Kind: Choice, Default: string(minibatch.Reshuffle), Choices: []string{string(minibatch.Replacement), string(minibatch.Reshuffle), string(minibatch.Cycle)}, Doc: "how rows are drawn"},
	),
	build: func(r reader, k kernel.Kernel, _ Problem) (learners.Estimator, error) {
		return doublyonline.Params{
			Kernel: k, Family: r.family(), Features: r.count("step-features", 0), StepSize: r.real("step-size", 0), StepDecay: r.real("step-decay", 0),
			Lambda: r.real("lambda", 0), Passes: r.count("passes", 0), Sampling: minibatch.Sampling(r.text("sampling")),
		}, nil
	},
}
