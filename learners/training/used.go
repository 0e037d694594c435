package training

import (
	"math"
	"strconv"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/sgdrf"
	"github.com/bkbtuner/bkb/learners/theory"
)

// Used returns all hyper-parameters that the fit of a model had. It replaces Auto by
// its value where the problem, the other values or the model determine it. A value that
// only the fit knows, such as a step size that it estimates, stays Auto.
func (a *Algorithm) Used(v Values, p Problem, m learners.Model) Values {
	u := used{reader{a, a.Resolve(v)}, p}
	u.lambda()
	u.centers() // before the lengths, which are learned for these
	if lengths, err := u.lengths(p); err == nil && u.v["kernel"] != linearModel {
		u.v[lengthScaleName], u.v[relevanceName] = FormatLengths(lengths), equalRelevance
	}
	u.features(m)
	if a.hasLosses() {
		u.set("delta", u.delta(p))
	}
	n := float64(p.Rows)
	switch solver := u.v["solver"]; {
	case a.Name == sgdRF.Name:
		if s, err := theory.MiniBatches.Settings(max(p.Rows, 1), theory.WorstCase()); err == nil {
			u.set("batch-size", float64(s.BatchSize))
		}
		if b := u.count("batch-size", 0); u.v["step-size"] == Auto && b > 0 {
			u.set("step-scale", sgdrf.DefaultStepScale(min(b, p.Rows), p.Rows))
		}
	case a.Name == doublyOnline.Name:
		u.set("step-size", 1/math.Sqrt(n*u.real("passes", 1)))
	case a.Name != nystromAlgorithm.Name:
	case solver == direct:
		u.set("iterations", 1)
	case solver == "sgd":
		u.set("iterations", 10)
		u.set("batch-size", min(math.Ceil(math.Sqrt(n)), n))
	default:
		u.set("iterations", 100)
	}
	return u.v
}

// used is values with Auto being replaced.
type used struct {
	reader
	p Problem
}

// set replaces Auto, if a hyper-parameter of this name exists.
func (u used) set(name string, x float64) {
	if u.v[name] == Auto {
		u.v[name] = strconv.FormatFloat(x, 'g', -1, 64)
		if x == math.Trunc(x) && math.Abs(x) < 1<<53 {
			u.v[name] = strconv.FormatInt(int64(x), 10)
		}
	}
}

// lambda sets λ to the learned one, or to κ²/n where the kernel has κ², and to 0 for the gradient and SGD
// solvers of nystrom.
func (u used) lambda() {
	if s := u.v["solver"]; u.a.Name == nystromAlgorithm.Name && (s == "gradient" || s == "sgd") {
		u.set("lambda", 0)
	}
	if u.v["lambda"] != Auto {
		return
	}
	k, err := u.kernel(u.p)
	if err != nil {
		return
	}
	if b := k.Bound(); b > 0 && !math.IsInf(b, 1) {
		u.set("lambda", u.ridge(k, u.p))
	}
}

// centers sets M of centres of which the model has those that add something, unless a sampler finds its own.
func (u used) centers() {
	if u.v["centers"] == Auto && !FindsCenters(u.text("sampler")) {
		u.set("centers", float64(u.reader.centers(u.p)))
	}
}

// features sets the features of the model.
func (u used) features(m learners.Model) {
	linear, ok := m.(*learners.Linear)
	if !ok || linear.Spec() == nil {
		return
	}
	u.set("random-features", float64(linear.Spec().Features))
	for name, f := range families {
		if f == linear.Spec().Family && u.v["features"] == Auto {
			u.v["features"] = name
		}
	}
}
