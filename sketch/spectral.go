package sketch

import (
	"math/rand/v2"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
)

// stationary are the kernels to which Fourier features converge.
func stationary() []string {
	return familiesWith(func(s *kernel.Spectrum) bool { return s != nil })
}

// isotropic are the kernels whose frequencies have a uniform direction.
func isotropic() []string {
	return familiesWith(func(s *kernel.Spectrum) bool { return s != nil && s.Stretch != nil })
}

func familiesWith(wanted func(*kernel.Spectrum) bool) []string {
	var names []string
	for _, f := range kernel.Families() {
		if wanted(f.Spectrum) {
			names = append(names, f.Name)
		}
	}
	return names
}

// FamilyOf returns the best kind of features of d coordinates that converge to k. Up to
// d = [MaxOrthogonal] these are orthogonal ones, if they exist, because their error is
// smallest. Beyond, they are independent ones, which are nearly orthogonal there and far
// cheaper to draw. Kernels without these have their own features. It does not depend on
// whether rows are sparse, so that equal data give equal models.
func FamilyOf(k kernel.Kernel, d int) Family {
	spec := k.Spec()
	for spec.Name == "scaled" && len(spec.Parts) == 1 {
		spec = spec.Parts[0]
	}
	switch f, _ := kernel.FamilyNamed(spec.Name); {
	case f.Name == "arc_cosine":
		return ReLU
	case f.Name == "linear":
		return GaussianSketch
	case d > MaxOrthogonal, f.Spectrum != nil && f.Spectrum.Stretch == nil:
		return Fourier
	}
	return Orthogonal
}

// stretch draws the factor of z ~ N(0, I) in a frequency.
func (t *target) stretch(rng *rand.Rand) float64 {
	if t.spectrum == nil { // features of inner products have w = z
		return 1
	}
	return t.spectrum.Stretch(t.base.Params, rng)
}

// frequency draws w for features number j.
func (t *target) frequency(w []float64, rng *rand.Rand) {
	if t.spectrum != nil && t.spectrum.Coordinate != nil {
		for c := range w {
			w[c] = t.spectrum.Coordinate(rng) / t.lengthScale(c)
		}
		return
	}
	for c := range w {
		w[c] = rng.NormFloat64()
	}
	s := t.stretch(rng)
	for c := range w {
		w[c] *= s / t.lengthScale(c)
	}
}

// rng returns the stream of frequency j, or of block j of frequencies.
func (t *target) rng(j int) *rand.Rand {
	return stream.New(stream.Derive(t.Seed, "sketch/"+string(t.Family), uint64(j)))
}
