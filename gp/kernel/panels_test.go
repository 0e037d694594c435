package kernel_test

import (
	"sync"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

// TestPanelsAreFilled checks which kernels package gp can have in panels, for dense
// rows of either type, from several goroutines at once. kerneltest checks the numbers.
func TestPanelsAreFilled(t *testing.T) {
	rng := kerneltest.Seeded(t, 11)
	x := kerneltest.Points(rng, 20, 3)
	gaussian := kerneltest.Gaussian(0.5)
	for _, c := range []struct {
		name string
		k    kernel.Kernel
		want bool
	}{
		{"gaussian", gaussian, true},
		{"scaled gaussian", must(kernel.NewScaled(2, gaussian)), true},
		{"matern52", must(kernel.NewMatern52(1, 2, 3)), true},
		{"arc-cosine", must(kernel.NewArcCosine(1)), false}, // has norms
	} {
		p, ok := kernel.Prepare(c.k, x).(kernel.PanelFiller)
		if !ok {
			t.Fatalf("%s: no panels", c.name)
		}
		var group sync.WaitGroup
		for _, rows := range []kernel.Rows{x, kernel.ConvertPoints[float32](x), x, x} {
			group.Go(func() {
				var s kernel.Scratch
				dst := make([]float64, 24*24)
				if got := p.FillPanels(dst, rows, 0, 20, &s); got != c.want {
					t.Errorf("%s: filled: %v", c.name, got)
				}
			})
		}
		group.Wait()
	}
}
