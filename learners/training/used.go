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
	u.lengths()
	u.features(m)
	u.setLoss()
	switch a.Name {
	case sgdRF.Name:
		u.miniBatches()
	case nystromAlgorithm.Name:
		u.plain()
	case doublyOnline.Name:
		u.real("step-size", 1/math.Sqrt(float64(p.Rows)*u.reader.real("passes", 1)))
	}
	return u.v
}

// used is values with Auto being replaced.
type used struct {
	reader
	p Problem
}

// auto reports whether a hyper-parameter of this name exists and is Auto.
func (u used) auto(name string) bool { return u.v[name] == Auto }

func (u used) real(name string, x float64) {
	if u.auto(name) {
		u.v[name] = strconv.FormatFloat(x, 'g', -1, 64)
	}
}

func (u used) count(name string, n int) {
	if u.auto(name) {
		u.v[name] = strconv.Itoa(n)
	}
}

// lengths sets the length scales.
func (u used) lengths() {
	if u.v["kernel"] == linearModel {
		return
	}
	if lengths, err := u.reader.lengths(u.p); err == nil {
		u.v[lengthScaleName], u.v[relevanceName] = FormatLengths(lengths), equalRelevance
	}
}

// lambda sets λ to the learned one, or to κ²/n where the kernel has κ², and to 0 for the gradient and SGD
// solvers of nystrom.
func (u used) lambda() {
	if !u.auto("lambda") {
		return
	}
	if s := u.v["solver"]; u.a.Name == nystromAlgorithm.Name && (s == "gradient" || s == "sgd") {
		u.v["lambda"] = "0"
		return
	}
	k, err := u.kernel(u.p)
	if err != nil {
		return
	}
	if b := k.Bound(); b > 0 && !math.IsInf(b, 1) {
		u.real("lambda", u.ridge(k, u.p))
	}
}

// centers sets M of uniform centres, of which the model has those that add something. A
// sampler finds its own M.
func (u used) centers() {
	n := u.p.Rows
	if s := u.v["sampler"]; !u.auto("centers") || s != Auto && s != "uniform" && s != "rpcholesky" {
		return
	}
	if m := u.reader.centers(u.p); m > 0 {
		u.count("centers", m)
		return
	}
	if u.a.Name == nystromAlgorithm.Name {
		u.count("centers", min(int(math.Ceil(10*math.Sqrt(float64(n)))), n))
		return
	}
	lambda, err := theory.Lambda(n, theory.WorstCase())
	if err != nil {
		return
	}
	if m, err := theory.PracticalCenters(n, 1/lambda, lambda, 1); err == nil {
		u.count("centers", min(m, n))
	}
}

// features sets the features of the model.
func (u used) features(m learners.Model) {
	linear, ok := m.(*learners.Linear)
	if !ok || linear.Spec() == nil {
		return
	}
	s := linear.Spec()
	u.count("random-features", s.Features)
	for name, f := range families {
		if f == s.Family && u.auto("features") {
			u.v["features"] = name
		}
	}
}

// miniBatches sets the settings of sgdrf.
func (u used) miniBatches() {
	n := u.p.Rows
	if s, err := theory.MiniBatches.Settings(max(n, 1), theory.WorstCase()); err == nil {
		u.count("batch-size", s.BatchSize)
	}
	if b := u.reader.count("batch-size", 0); u.auto("step-size") && b > 0 {
		u.real("step-scale", sgdrf.DefaultStepScale(min(b, n), n))
	}
}

// plain sets the settings of nystrom.
func (u used) plain() {
	switch u.v["solver"] {
	case direct:
		u.count("iterations", 1)
	case "sgd":
		u.count("iterations", 10)
		u.count("batch-size", min(int(math.Ceil(math.Sqrt(float64(u.p.Rows)))), u.p.Rows))
	default:
		u.count("iterations", 100)
	}
}
