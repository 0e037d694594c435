package theory

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Data determines the ranges of hyper-parameters.
type Data struct {
	Rows int // n ≥ 1
	// MedianDistance is the median distance between two inputs, > 0, or 0 for 1.
	MedianDistance float64
}

// Scale says how the values of a hyper-parameter are spread.
type Scale string

// These are the scales.
const (
	Log    Scale = "log"
	Choice Scale = "choice"
)

// Dimension is the range of one hyper-parameter, with a value to start from.
type Dimension struct {
	// Name is the name in the field's terms, with hyphens, such as "length-scale".
	Name string
	// Unit is the unit of the numbers, such as "γ*" or "κ²", or empty for plain numbers.
	Unit  string
	Scale Scale
	// Low ≤ Start ≤ High, whole numbers if Integer.
	Low, High, Start float64
	Integer          bool
	// Least and Most limit the values that have a meaning to the learner. There are no more
	// centres than rows, for example. Both are included if Integer, and excluded if not.
	Least, Most float64
	// Floor, if not 0, is a value below which results differ by rounding errors only. A
	// range may extend below it.
	Floor float64
	// Step, if not 0, is the distance of values, such as 2 where they must be even.
	Step float64
	// Choices are the values for Scale Choice. The first is the one to start from.
	// Ordered says that neighbours in the list are alike.
	Choices []string
	Ordered bool
	// Fidelity says that one training passes through the smaller values, so that they
	// need no trial of their own.
	Fidelity bool
}

// algorithms are the names that Space accepts.
var algorithms = []string{"avgsgd", "doublyonline", "falkon", "krr", "landweber", "log-falkon", "nystrom", "sgdrf"}

// Space returns the hyper-parameters of an algorithm that are worth tuning. The ranges
// suit the data, and the values to start from come from theory or experience.
//
//	all           kernel: Gaussian, Matérn-5/2, Matérn-3/2, Laplace, by smoothness;
//	              length-scale in [0.1, 10] median distances
//	krr, falkon,  λ ∈ [1e-12, 1e-1], from Lambda(n, {½, 0}) = 1/n. The Gaussian
//	nystrom       kernel has α ≈ 0, and 1/n is about the value in the tables of
//	              Carratino (2020), 1e-6 at n = 5·10⁵. length-scale up to 300 median
//	              distances. Smooth functions have the best fits of Matérn and Laplace
//	              kernels there, with λ near the lower end
//	log-falkon    λ ∈ [1e-10, 1e-1]
//	falkon        M up to n for n up to 10,000, and then up to 4000, or 10√n if that is
//	              more. These take M² numbers of memory and M³ operations
//	log-falkon,   M as falkon
//	nystrom
//	landweber     up to 4√n iterations, or 3·10⁸ kernel evaluations if they are more,
//	              from 100 to 1000; from n^{1/(2r+α)} with (½, 1), (2.47): √n
//	sgdrf         step-scale ∈ [0.05, 1.5], of γ*; b ∈ [1, 4√n], from MiniBatches
//	              with (½, 1); M ∈ [√n/2, 16√n]; the features follow the kernel;
//	              λ is 0 as in the paper, or a power of 10 up to 0.01; θ up to ½
//	avgsgd        step-size ∈ [0.01, 1]/κ², from γ = 1/(4κ²); sampling; up to 400
//	              passes, as many as make 4·10⁹ kernel evaluations
//	doublyonline  step-size ∈ [0.01, 10]T^−½ for T = n, features per step
//
// Names are those of learners/training.
//
// An unknown name is a *learners.ParameterError.
func Space(algorithm string, d Data) ([]Dimension, error) {
	d.MedianDistance = cmp.Or(d.MedianDistance, 1)
	if err := cmp.Or(
		checkPositive("median distance", d.MedianDistance), checkRows(d.Rows),
		require(slices.Contains(algorithms, algorithm), "algorithm", algorithm, "one of "+strings.Join(algorithms, ", ")),
	); err != nil {
		return nil, err
	}
	kernel := []Dimension{
		{Name: "kernel", Scale: Choice, Choices: []string{"gaussian", "matern52", "matern32", "laplace"}, Ordered: true}, // by smoothness
		logs("length-scale", "", 0.1*d.MedianDistance, widest(algorithm)*d.MedianDistance, d.MedianDistance),
	}
	return append(kernel, d.own(algorithm)...), nil
}

// widest returns the largest length scale in median distances. Gradients converge slowly
// with long ones.
func widest(algorithm string) float64 {
	switch algorithm {
	case "krr", "falkon", "nystrom":
		return 300
	}
	return 10
}

// own returns the dimensions of only this algorithm.
func (d Data) own(algorithm string) []Dimension {
	n := d.Rows
	root := math.Sqrt(float64(n))
	switch algorithm {
	case "krr":
		return []Dimension{d.lambda(leastLambda)}
	case "falkon", "log-falkon", "nystrom":
		high := max(10*root, mostCenters)
		if n <= wholeRows {
			high = float64(n)
		}

		least := leastLambda
		if algorithm == "log-falkon" {
			least = 1e-10 // it decreases λ in steps, so a smaller one takes more of them
		}
		return []Dimension{d.lambda(least), counts("centers", min(500, 10*root), high, 10*root, n)}
	case "landweber":
		few := max(4*root, 3e8/float64(n)/float64(n)) // a step takes n² kernel values
		return []Dimension{fidelity("iterations", min(max(few, 100), 1000), root)}
	case "sgdrf":
		s, _ := MiniBatches.Settings(n, WorstCase()) // n ≥ 1
		scale := logs("step-scale", "γ*", 0.05, 1.5, 1)
		scale.Most = 2 // iterates diverge from there on
		return []Dimension{
			scale,
			counts("batch-size", 1, 4*root, float64(s.BatchSize), n),
			evens(counts("random-features", root/2, 16*root, max(256, float64(s.Features)), math.MaxInt-1)),
			fidelity("passes", 20, 5),
			{Name: "averaging", Scale: Choice, Choices: []string{"none", "tail"}},
			{Name: "lambda", Unit: "κ²", Scale: Choice, Choices: []string{"0", "1e-8", "1e-7", "1e-6", "1e-5", "1e-4", "1e-3", "1e-2"}, Ordered: true},
			{Name: "step-decay", Scale: Choice, Choices: []string{"0", "0.25", "0.5"}, Ordered: true},
		}
	case "avgsgd":
		return []Dimension{
			logs("step-size", "κ⁻²", 0.01, 1, 0.25),
			fidelity("passes", min(max(4e9/float64(n)/float64(n), 5), 400), 5),
			{Name: "sampling", Scale: Choice, Choices: []string{"replacement", "reshuffle", "cycle"}},
		}
	default: // doublyonline
		return []Dimension{
			logs("step-size", "", 0.01/root, 10/root, 1/root),
			evens(counts("step-features", 2, 64, 16, math.MaxInt-1)),
		}
	}
}

// Up to wholeRows all rows can be centres. Beyond there are mostCenters, or 10√n if that is more.
const wholeRows, mostCenters = 10_000, 4000

// leastLambda is the λ in units of κ² below which rounding errors decide.
const leastLambda = 1e-12

func (d Data) lambda(least float64) Dimension {
	start, _ := Lambda(d.Rows, Regularity{R: 0.5, Alpha: 0}) // n ≥ 1
	l := logs("lambda", "κ²", least, 0.1, start)
	l.Floor = leastLambda
	return l
}

// evens rounds up to even numbers, because features come in pairs.
func evens(d Dimension) Dimension {
	for _, v := range []*float64{&d.Least, &d.Low, &d.Start, &d.High} {
		*v = 2 * math.Ceil(*v/2)
	}
	d.Step = 2
	return d
}

// fidelity is a number of steps of an iteration in which every step gives a model.
func fidelity(name string, high, start float64) Dimension {
	p := counts(name, 1, high, start, math.MaxInt)
	p.Fidelity = true
	return p
}

func logs(name, unit string, low, high, start float64) Dimension {
	return Dimension{Name: name, Unit: unit, Scale: Log, Low: low, High: high, Start: min(max(start, low), high), Most: math.Inf(1)}
}

// counts is a range of whole numbers in [1, limit].
func counts(name string, low, high, start float64, limit int) Dimension {
	l, h := float64(ceil(low, limit)), float64(ceil(high, limit))
	return Dimension{
		Name: name, Scale: Log, Integer: true,
		Low: l, High: max(l, h), Start: min(max(float64(ceil(start, limit)), l), max(l, h)),
		Least: 1, Most: float64(limit),
	}
}
