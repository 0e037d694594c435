package sketch

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// FeatureMap is a random map φ from inputs in ℝᵈ to ℝᴹ with
//
//	E φ(x)ᵀφ(y) = k(x, y),
//
// φ(x) = (1/√M)(ψ_1(x), …, ψ_M(x)). The error of φ(x)ᵀφ(y) falls as M^{−1/2}.
//
// ψ_j depends only on the seed and j. A map with more features begins with those of a
// map with fewer, up to the factor 1/√M. The Spec, a few numbers, builds the map again,
// or one with more features. A FeatureMap is immutable and safe for concurrent use.
// Apply itself uses one goroutine.
type FeatureMap interface {
	// Dim returns d.
	Dim() int
	// Features returns M.
	Features() int
	// Kernel returns the kernel k to which φ(x)ᵀφ(y) converges.
	Kernel() kernel.Kernel
	// Apply sets row i of dst, x.Len()×M row-major, to φ(x_i). Rows are dense or sparse, and a
	// row's features do not depend on the rows beside it. Its errors are [*kernel.ShapeError],
	// [*kernel.TypeError], [*kernel.DimensionError] and [*kernel.NonFiniteError].
	Apply(dst []float64, x kernel.Rows) error
	// Spec returns the description from which [NewFeatures] makes an equal map.
	Spec() FeatureSpec
}

// Family names a kind of feature map.
type Family string

// These are the families, see the constructors of the same names.
const (
	Fourier        Family = "fourier"
	FourierCosine  Family = "fourier_cosine"
	Orthogonal     Family = "orthogonal"
	Fastfood       Family = "fastfood"
	ReLU           Family = "relu"
	GaussianSketch Family = "gaussian_sketch"
)

// FeatureSpec describes a feature map and can be stored as JSON.
type FeatureSpec struct {
	Family   Family      `json:"family"`
	Kernel   kernel.Spec `json:"kernel"`
	Dim      int         `json:"dim"`
	Features int         `json:"features"`
	Seed     uint64      `json:"seed"`
}

// NewFeatures builds the map that spec describes. Its errors are [*FeatureError],
// [*ParameterError] and those of [kernel.New].
func NewFeatures(spec FeatureSpec) (FeatureMap, error) {
	return NewFeaturesContext(context.Background(), spec)
}

// NewFeaturesContext is NewFeatures with a context that can end it. Orthogonal features
// of many coordinates take seconds or more.
func NewFeaturesContext(ctx context.Context, spec FeatureSpec) (FeatureMap, error) {
	k, err := kernel.New(spec.Kernel, nil)
	if err != nil {
		return nil, err
	}
	d, m, seed := spec.Dim, spec.Features, spec.Seed
	switch spec.Family {
	case Fourier:
		return NewFourier(k, d, m, seed)
	case FourierCosine:
		return NewFourierCosine(k, d, m, seed)
	case Orthogonal:
		return newOrthogonal(ctx, k, d, m, seed)
	case Fastfood:
		return NewFastfood(k, d, m, seed)
	case ReLU:
		return NewReLU(k, d, m, seed)
	case GaussianSketch:
		return NewGaussianSketch(k, d, m, seed)
	}
	return nil, &FeatureError{Map: spec.Family, Reason: "no such family"}
}

// maxElements limits d·M, so that a spec read from a file cannot ask for more memory
// than machines have.
const maxElements = 1 << 31

// target is the kernel of a map, taken apart as amplitude² times a base kernel of x/ℓ.
type target struct {
	FeatureSpec
	kernel    kernel.Kernel
	base      kernel.Spec
	spectrum  *kernel.Spectrum // of base, or nil
	amplitude float64
}

// newTarget checks the arguments that all maps share. families are the base kernels
// that it can converge to.
func newTarget(family Family, k kernel.Kernel, d, m int, seed uint64, families ...string) (target, error) {
	t := target{
		FeatureSpec: FeatureSpec{Family: family, Kernel: k.Spec(), Dim: d, Features: m, Seed: seed},
		kernel:      k, base: k.Spec(), amplitude: 1,
	}
	if d < 1 {
		return t, parameterError(string(family), "Dim", float64(d), "≥ 1")
	}
	if m < 1 {
		return t, parameterError(string(family), "Features", float64(m), "≥ 1")
	}
	if elements := float64(d) * float64(m); elements > maxElements {
		return t, parameterError(string(family), "Dim·Features", elements, fmt.Sprintf("≤ %d", maxElements))
	}
	for t.base.Name == "scaled" && len(t.base.Parts) == 1 {
		t.amplitude *= math.Sqrt(t.base.Params["factor"])
		t.base = t.base.Parts[0]
	}
	if !slices.Contains(families, t.base.Name) {
		return t, &FeatureError{Map: family, Reason: fmt.Sprintf("they do not converge to the %s kernel, but to %v", t.base.Name, families)}
	}
	if n := len(t.base.LengthScales); n != 1 && n != d {
		return t, &FeatureError{Map: family, Reason: fmt.Sprintf("%d length scales for %d coordinates", n, d)}
	}
	f, _ := kernel.FamilyNamed(t.base.Name)
	t.spectrum = f.Spectrum
	return t, nil
}

// lengthScale returns ℓ_c.
func (t *target) lengthScale(c int) float64 {
	if len(t.base.LengthScales) == 1 {
		return t.base.LengthScales[0]
	}
	return t.base.LengthScales[c]
}

// Dim returns d.
func (t *target) Dim() int { return t.FeatureSpec.Dim }

// Features returns M.
func (t *target) Features() int { return t.FeatureSpec.Features }

// Kernel returns the limit.
func (t *target) Kernel() kernel.Kernel { return t.kernel }

// Spec returns the map's description.
func (t *target) Spec() FeatureSpec { return t.FeatureSpec }

// scale is the factor of every feature with E ψ_jψ_j' = share·k, which is amplitude/√M
// for share = 1.
func (t *target) scale(share float64) float64 {
	return t.amplitude / math.Sqrt(float64(t.FeatureSpec.Features)*share)
}

// checkApply verifies the arguments of Apply.
func (t *target) checkApply(dst []float64, x kernel.Rows) error {
	if want := x.Len() * t.Features(); len(dst) != want {
		return &kernel.ShapeError{In: "sketch", What: "dst (n×M)", Got: len(dst), Want: fmt.Sprint(want)}
	}
	return t.checkRows(x)
}

// checkRows verifies inputs.
func (t *target) checkRows(x kernel.Rows) error {
	if err := t.kernel.Check(x); err != nil {
		return err
	}
	if x.Dim() != t.Dim() {
		return &kernel.DimensionError{What: "x", Got: x.Dim(), Want: t.Dim()}
	}
	return kernel.CheckFinite("x", x)
}
