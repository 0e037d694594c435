package learners_test

import (
	"context"
	"errors"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/sketch"
)

// A map too large for memory is refused before it is made.
func TestFeaturesBeyondMemory(t *testing.T) {
	racetest.Alone(t)
	k, err := kernel.NewGaussian(1)
	if err != nil {
		t.Fatal(err)
	}
	spec := sketch.FeatureSpec{Family: sketch.Fourier, Kernel: k.Spec(), Dim: 1 << 20, Features: 1 << 9}
	var e *learners.ParameterError
	if _, err := learners.NewFeatures(context.Background(), "sgdrf", spec); !errors.As(err, &e) || e.Parameter != "features" {
		t.Errorf("4 GiB: %v", err)
	}
	spec.Family = sketch.Fastfood
	if _, err := learners.NewFeatures(context.Background(), "sgdrf", spec); err != nil {
		t.Errorf("fastfood: %v", err)
	}
	spec.Family, spec.Dim = sketch.Fourier, 100
	if _, err := learners.NewFeatures(context.Background(), "sgdrf", spec); err != nil {
		t.Errorf("400 kB: %v", err)
	}
}
