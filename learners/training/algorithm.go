package training

import (
	"fmt"
	"maps"
	"strings"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners"
)

// Algorithm is a learner by name.
type Algorithm struct {
	// Name is the name of the algorithm, and Summary describes it in a line.
	Name, Summary string
	// About gives its cost, when to use it and its source.
	About      string
	Parameters []Parameter
	// build makes an estimator from checked values. The kernel is nil for a linear model.
	build func(r reader, k kernel.Kernel, p Problem) (learners.Estimator, error)
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
	r := reader{a, v}
	var k kernel.Kernel
	if r.text("kernel") != linearModel {
		var err error
		if k, err = r.kernel(p); err != nil {
			return nil, err
		}
	}
	e, err := a.build(r, k, p)
	if err != nil {
		return nil, err
	}
	if e, err = r.withLoss(e, p); err != nil {
		return nil, err
	}
	if r.text(metricName) == fullMetric {
		switch {
		case p.Metric == nil:
			return nil, a.refused(metricName, fullMetric, "a call of Learn before, or "+diagonal)
		case r.learns() || strings.Contains(r.text(lengthScaleName), ","):
			return nil, a.refused(metricName, fullMetric, diagonal+" with a length scale for each input")
		}
		e = mapped{e, p.Metric.L}
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
