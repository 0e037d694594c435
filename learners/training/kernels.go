package training

import (
	"fmt"
	"strconv"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// kernels are the names that NewKernel accepts.
var kernels = []string{"gaussian", "laplace", "matern12", "matern32", "matern52", "rational-quadratic", "linear", "polynomial", "arc-cosine"}

// newKernel returns a kernel by name with one length scale for all coordinates. degree
// and offset are those of the polynomial kernel.
func newKernel(name string, lengthScale float64, degree int, offset float64) (kernel.Kernel, error) {
	switch name {
	case "gaussian":
		return kernel.NewGaussian(lengthScale)
	case "laplace":
		return kernel.NewLaplace(lengthScale)
	case "matern12":
		return kernel.NewMatern12(lengthScale)
	case "matern32":
		return kernel.NewMatern32(lengthScale)
	case "matern52":
		return kernel.NewMatern52(lengthScale)
	case "rational-quadratic":
		return kernel.NewRationalQuadratic(1, lengthScale)
	case "linear":
		return kernel.NewLinear(lengthScale)
	case "polynomial":
		return kernel.NewPolynomial(degree, offset, lengthScale)
	case "arc-cosine":
		return kernel.NewArcCosine(lengthScale)
	}
	return nil, fmt.Errorf("kernel %q is not one of %v", name, kernels)
}

// NewKernel returns a kernel by name with a length scale, a number or Auto, for
// all coordinates, and that length scale.
func NewKernel(name, lengthScale string, p Problem) (kernel.Kernel, float64, error) {
	scale := p.MedianDistance
	if lengthScale != Auto {
		var err error
		if scale, err = strconv.ParseFloat(lengthScale, 64); err != nil {
			return nil, 0, fmt.Errorf("length-scale %q must be a number or %s", lengthScale, Auto)
		}
	}
	k, err := newKernel(name, scale, 3, 1)
	return k, scale, err
}

// kernel returns the kernel of the parameters that withKernel adds.
func (r reader) kernel(p Problem) (kernel.Kernel, error) {
	return newKernel(r.text("kernel"), r.real("length-scale", p.MedianDistance), r.count("degree", 0), r.real("offset", 0))
}
