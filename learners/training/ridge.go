package training

import (
	"math"
	"slices"
	"strconv"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/falkon"
	"github.com/bkbtuner/bkb/learners/krr"
	"github.com/bkbtuner/bkb/learners/nystrom"
	"github.com/bkbtuner/bkb/sketch"
)

// Several algorithms have these parameters.
var (
	lambdaParameter = Parameter{
		Name: "lambda", Kind: Real, Default: Auto, Auto: "κ²/n or learned",
		Doc: "the ridge λ, per sample",
	}
	centersParameter = Parameter{
		Name: "centers", Kind: Count, Positive: true, Default: Auto, Auto: "about 10√n, and 2000 or more for learned length scales",
		Doc: "the number of centres M",
	}
	samplerParameter = Parameter{
		Name: "sampler", Kind: Choice, Choices: samplerNames(), Default: Auto,
		Doc: "how centres are chosen (auto is uniform, or rpcholesky where groups of rows are rare)",
	}
	// positiveLambdaParameter is for learners without a solution for λ = 0.
	positiveLambdaParameter = func() Parameter {
		p := lambdaParameter
		p.Positive = true
		return p
	}()
	logisticLambdaParameter = func() Parameter {
		p := positiveLambdaParameter
		p.Auto = "κ²/n"
		return p
	}()
	samplerLambdaParameter = Parameter{
		Name: "sampler-lambda", Kind: Real, Positive: true, Default: Auto, Auto: "100λ",
		Doc: "the λ of leverage scores, for samplers that have them",
	}
	precisionParameter = Parameter{
		Name: "precision", Kind: Choice, Choices: []string{"float64", "float32"}, Default: "float64",
		Doc: "the precision of kernel values while fitting",
	}
	distancesParameter = Parameter{
		Name: "distances", Kind: Choice, Choices: []string{autoDistances, "direct", "expanded"}, Default: autoDistances,
		Doc: "how distances are computed (expanded is faster and rounds more)",
	}
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

func samplerNames() []string {
	names := make([]string, len(samplers))
	for i, s := range samplers {
		names[i] = s.name
	}
	return names
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

// centers returns M, or 0 for the default of the learner. Learned length scales have many centres,
// because λ is learned for rows that are all centres, and a kernel with short ones needs them.
func (r reader) centers(p Problem) int {
	auto := 0
	if rows := learnFits[len(learnFits)-1].rows; r.learns() && p.Rows > 0 {
		auto = min(p.Rows, max(rows, int(10*math.Sqrt(float64(p.Rows)))))
	}
	return r.count("centers", auto)
}

func (r reader) sampler() sketch.Sampler {
	s, _ := SamplerNamed(r.text("sampler"))
	return s
}

func (r reader) precision() kernel.Precision {
	if r.text("precision") == "float32" {
		return kernel.Float32
	}
	return kernel.Float64
}

const autoDistances = "automatic"

func (r reader) distances() kernel.Distances {
	switch r.text("distances") {
	case "direct":
		return kernel.DirectDistances
	case "expanded":
		return kernel.ExpandedDistances
	}
	return kernel.AutoDistances
}

var ridgeRegression = Algorithm{
	Name:    "krr",
	Summary: "kernel ridge regression, exact",
	About: `Kernel ridge regression solves (K + λnI)c = y exactly. It takes n² numbers of memory and
n³/3 operations, so it suits up to about ten thousand rows.`,
	Parameters: withKernel(
		lambdaParameter,
		Parameter{Name: "max-rows", Kind: Count, Positive: true, Default: strconv.Itoa(krr.DefaultMaxRows), Doc: "the largest number of rows n, which take 8n² bytes"},
	),
	build: func(r reader, p Problem) (learners.Estimator, error) {
		k, err := r.kernel(p)
		if err != nil {
			return nil, err
		}
		return krr.Params{Kernel: k, Lambda: r.real("lambda", r.ridge(k, p)), MaxRows: r.count("max-rows", 0)}, nil
	},
}

// kappaSqOf returns κ² where the kernel has one, else 1.
func kappaSqOf(k kernel.Kernel) float64 {
	if b := k.Bound(); b > 0 && !math.IsInf(b, 1) {
		return b
	}
	return 1
}

var falkonAlgorithm = Algorithm{
	Name:    "falkon",
	Summary: "kernel ridge regression on M centres by preconditioned conjugate gradients",
	About: `FALKON solves kernel ridge regression on M centres by a preconditioned iteration. It
takes O(nMt + M³) time and O(M²) memory, so that it suits millions of rows (Carratino,
2020, chapter 4). Centres are uniform, or by randomly pivoted Cholesky where that leaves
clearly less of the kernel, which is where groups of rows are rare. With --sampler bless
they have large leverage scores (§5.3). With --loss huber or quantile it takes Newton steps of up to --iterations iterations each.`,
	Parameters: slices.Concat(withKernel(
		positiveLambdaParameter, centersParameter, samplerParameter, samplerLambdaParameter,
		Parameter{Name: "solver", Kind: Choice, Default: conjugateGradient, Choices: []string{conjugateGradient, string(falkon.Gradient)}, Doc: "the solver"},
		Parameter{Name: "iterations", Kind: Count, Positive: true, Default: "100", Doc: "the largest number of iterations t"},
		Parameter{Name: "tolerance", Kind: Real, Positive: true, Default: "1e-7", Doc: "the relative residual that ends it"},
		factorizationParameter, epsilonParameter, precisionParameter, distancesParameter,
	), lossParameters),
	build: func(r reader, p Problem) (learners.Estimator, error) {
		k, err := r.kernel(p)
		if err != nil {
			return nil, err
		}
		lambda := 0.0
		if r.learns() {
			lambda = r.ridge(k, p)
		}
		return falkon.Params{
			Kernel: k, Lambda: r.real("lambda", lambda), Centers: r.centers(p),
			Sampler: r.sampler(), SamplerLambda: r.real("sampler-lambda", 0),
			Solver: r.solver(), Iterations: r.count("iterations", 0), Tolerance: r.real("tolerance", 0),
			Factorization: r.factorization(), Epsilon: r.real("epsilon", 0), Precision: r.precision(), Distances: r.distances(),
		}, err
	},
}

const conjugateGradient = "cg"

func (r reader) solver() falkon.Solver {
	if s := r.text("solver"); s != conjugateGradient {
		return falkon.Solver(s)
	}
	return falkon.ConjugateGradient
}

var epsilonParameter = Parameter{
	Name: "epsilon", Kind: Real, Positive: true, Default: Auto, Auto: "1e-13, or 1e-6 in single precision",
	Doc: "the relative part of K_MM that counts as 0",
}

var factorizationParameter = Parameter{
	Name: "factorization", Kind: Choice, Default: pivoted, Choices: []string{pivoted, "cholesky", "qr", "eigen"},
	Doc: "how K_MM is factored",
}

const pivoted = "pivoted"

func (r reader) factorization() falkon.Factorization {
	if f := r.text("factorization"); f != pivoted {
		return falkon.Factorization(f)
	}
	return falkon.FactorPivoted
}

var logFalkon = Algorithm{
	Name:    "log-falkon",
	Summary: "kernel logistic regression on M centres, for classes with probabilities",
	About: `Logistic FALKON is FALKON for classes, with probabilities. It fits the logistic loss by
Newton's method with a falling λ, and FALKON's preconditioned iteration computes each
step (Marteau-Ferey, Bach and Rudi, 2019).`,
	Parameters: withKernel(
		logisticLambdaParameter, centersParameter, samplerParameter, samplerLambdaParameter,
		multiclassParameter,
		Parameter{Name: "iterations", Kind: Count, Positive: true, Default: Auto, Auto: "as many as λ needs to fall, and 10", Doc: "the largest number of Newton steps"},
		Parameter{Name: "steps", Kind: Count, Positive: true, Default: "20", Doc: "the largest number of conjugate gradient iterations in a Newton step"},
		Parameter{Name: "decay", Kind: Real, Positive: true, Default: "100", Doc: "the factor by which λ falls from a Newton step to the next, above 1"},
		Parameter{Name: "tolerance", Kind: Real, Positive: true, Default: "1e-3", Doc: "the norm of the gradient that ends the fit"},
		factorizationParameter, epsilonParameter, precisionParameter, distancesParameter,
	),
	build: func(r reader, p Problem) (learners.Estimator, error) {
		if p.Task != data.Classification {
			return nil, r.a.refused("target", string(p.Task), "classes; for numbers use falkon")
		}
		k, err := r.kernel(p)
		return falkon.LogisticParams{
			Params: falkon.Params{
				Kernel: k, Lambda: r.real("lambda", 0), Centers: r.centers(p),
				Sampler: r.sampler(), SamplerLambda: r.real("sampler-lambda", 0),
				Iterations: r.count("iterations", 0), Tolerance: r.real("tolerance", 0),
				Factorization: r.factorization(), Epsilon: r.real("epsilon", 0), Precision: r.precision(), Distances: r.distances(),
			}, Multiclass: r.multiclass(), Steps: r.count("steps", 0), Decay: r.real("decay", 0),
		}, err
	},
}

const oneVsRest = "one-vs-rest"

var multiclassParameter = Parameter{
	Name: "multiclass", Kind: Choice, Default: string(falkon.SoftmaxLoss), Choices: []string{string(falkon.SoftmaxLoss), oneVsRest},
	Doc: "how more than two classes are learned (softmax for all together)",
}

func (r reader) multiclass() falkon.Multiclass {
	if r.text(multiclassParameter.Name) == oneVsRest {
		return falkon.OneVsRest
	}
	return falkon.SoftmaxLoss
}

const direct = "direct"

var nystromAlgorithm = Algorithm{
	Name:    "nystrom",
	Summary: "kernel ridge regression on M centres, direct or by plain iterations",
	About: `Nyström kernel ridge regression on M centres works without FALKON's preconditioner. The
direct solver takes O(nM² + M³) time (Carratino, 2020, §4.1). The other solvers are
gradient descent, SGD and conjugate gradients. Gradient descent with λ = 0 is NYTRO, in
which early stopping takes the place of λ.`,
	Parameters: withKernel(
		Parameter{Name: "lambda", Kind: Real, Default: Auto, Auto: "κ²/n, or 0 for gradient and sgd", Doc: lambdaParameter.Doc},
		Parameter{Name: "centers", Kind: Count, Positive: true, Default: Auto, Auto: "10√n", Doc: centersParameter.Doc},
		samplerParameter, samplerLambdaParameter,
		Parameter{Name: "solver", Kind: Choice, Default: direct, Choices: []string{direct, string(nystrom.Gradient), string(nystrom.SGD), string(nystrom.CG)}, Doc: "the solver"},
		Parameter{Name: "step-size", Kind: Real, Positive: true, Default: Auto, Auto: "nearly the largest stable step", Doc: "the step size γ of gradient and sgd"},
		Parameter{Name: "batch-size", Kind: Count, Positive: true, Default: Auto, Auto: "√n", Doc: "the rows of a mini-batch of sgd"},
		Parameter{Name: "iterations", Kind: Count, Positive: true, Default: Auto, Auto: "100, or 10 passes for sgd", Doc: "the largest number of iterations t"},
		Parameter{Name: "tolerance", Kind: Real, Positive: true, Default: "1e-10", Doc: "the relative residual that ends cg"},
		precisionParameter, distancesParameter,
	),
	build: func(r reader, p Problem) (learners.Estimator, error) {
		k, err := r.kernel(p)
		if err != nil {
			return nil, err
		}
		solver, lambda := nystrom.Solver(r.text("solver")), 0.0
		if solver == direct {
			solver = nystrom.Direct
		}
		if solver == nystrom.Direct || solver == nystrom.CG {
			lambda = r.ridge(k, p)
		}
		return nystrom.Params{
			Kernel: k, Lambda: r.real("lambda", lambda), Centers: r.centers(p),
			Sampler: r.sampler(), SamplerLambda: r.real("sampler-lambda", 0),
			Solver: solver, StepSize: r.real("step-size", 0), BatchSize: r.count("batch-size", 0),
			Iterations: r.count("iterations", 0), Tolerance: r.real("tolerance", 0), Precision: r.precision(), Distances: r.distances(),
		}, nil
	},
}
