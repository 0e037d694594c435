package training

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/learners"
)

// Algorithm is a learner by name.
type Algorithm struct {
	// Name is the name of the algorithm, and Summary describes it in a line.
	Name, Summary string
	// About gives its cost, when to use it and its source.
	About      string
	Parameters []Parameter
	// build makes an estimator from checked values.
	build func(r reader, p Problem) (learners.Estimator, error)
}

// Algorithms returns all algorithms, the most useful first.
func Algorithms() []Algorithm {
	return []Algorithm{falkonAlgorithm, logFalkon, sgdRF, ridgeRegression, nystromAlgorithm, landweberAlgorithm, averagedSGD, doublyOnline}
}

// Find returns the algorithm of a name.
func Find(name string) (Algorithm, error) {
	var names []string
	for _, a := range Algorithms() {
		if a.Name == name {
			return a, nil
		}
		names = append(names, a.Name)
	}
	return Algorithm{}, fmt.Errorf("there is no algorithm %q; use one of %s", name, strings.Join(names, ", "))
}

// Estimator returns the estimator for a problem with some hyper-parameters, and
// defaults for the others. It returns a *ValueError for an unknown name or text, and
// the error of the estimator's Validate for a value out of range.
func (a *Algorithm) Estimator(v Values, p Problem) (learners.Estimator, error) {
	if err := a.Check(v); err != nil {
		return nil, err
	}
	e, err := a.build(reader{a, v}, p)
	if err != nil {
		return nil, err
	}
	if e, err = (reader{a, v}).withLoss(e, p); err != nil {
		return nil, err
	}
	return e, e.Validate()
}

// Resolve returns all hyper-parameters, with defaults for those not in v.
func (a *Algorithm) Resolve(v Values) Values {
	all := Values{}
	for _, p := range a.Parameters {
		all[p.Name] = p.Default
	}
	maps.Copy(all, v)
	return all
}

// withKernel returns parameters after those of the kernel, which most algorithms have.
func withKernel(parameters ...Parameter) []Parameter {
	return slices.Concat([]Parameter{
		{Name: "kernel", Kind: Choice, Choices: kernels, Default: "gaussian", Doc: "the kernel"},
		{Name: lengthScaleName, Kind: Lengths, Default: Median, Auto: "learned", Doc: "the length scale, or one for each encoded input as in 0.5,1,2 (auto learns λ and one for each)"},
		{Name: relevanceName, Kind: Choice, Choices: []string{equalRelevance, learnedRelevance}, Default: equalRelevance, Doc: "relevance of inputs"},
		{Name: "degree", Kind: Count, Default: "3", Doc: "the degree of the polynomial kernel"},
		{Name: "offset", Kind: Real, Default: "1", Doc: "the offset of the polynomial kernel"},
	}, parameters)
}
