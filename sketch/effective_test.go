package sketch

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/sketch/sketchtest"
)

// The estimate of the effective dimension of every level is within 25 % of the exact
// one for all kernels, data, λ, q₂ and seeds here.
func TestEffectiveDimension(t *testing.T) {
	racetest.Alone(t)
	n := racetest.Size(400, 700)
	var limited Sampler = BLESS{MaxPoints: 100, MaxCandidates: n / 2}
	rng := kerneltest.Seeded(t, 68)
	blobs, _ := sketchtest.Blobs(n, rng)
	_, su := susy(n, 69)
	square := kernel.NewPoints[float64](n, 2, nil)
	for i := range n {
		square.Row(i)[0], square.Row(i)[1] = rng.Float64(), rng.Float64()
	}
	for _, c := range []struct {
		name string
		k    kernel.Kernel
		x    *kernel.Points[float64]
	}{
		{"susy, Gaussian", kerneltest.Gaussian(4), su},
		{"blobs, Gaussian", kerneltest.Gaussian(1), blobs},
		{"square, Gaussian", kerneltest.Gaussian(0.1), square},
		{"square, Matérn-3/2", must(kernel.NewMatern32(0.3)), square},
		{"crowded, Matérn-5/2", matern(0.5), sketchtest.Crowded(n, rng)},
		{"crowded, Laplace", must(kernel.NewLaplace(1)), sketchtest.Crowded(n, rng)},
	} {
		sp := newSpectrum(c.k, c.x)
		for _, s := range []namedSampler{
			{"BLESS", BLESS{}},
			{"BLESS, q₂ = 2", BLESS{Oversampling: 2}},
			{"BLESS, q = 4", BLESS{Step: 4}},
			{"BLESSR", BLESSR{}},
			{"BLESS, M = 100", BLESS{MaxPoints: 100}},
			{"BLESS, M = 100, half the rows", limited},
			{"BLESSR, M = 100", BLESSR{MaxPoints: 100}},
		} {
			low, high, at := math.Inf(1), 0.0, [3]float64{}
			for seed := range uint64(racetest.Size(1, 4)) {
				d := must(s.Sample(background, c.k, kernel.FromRows(c.x), 2e-4, rand.New(rand.NewPCG(70, seed))))
				for _, l := range d.Path {
					exact := sp.dimension(l.Lambda)
					if exact < 10 { // a handful of draws is too few
						continue
					}
					r := l.EffectiveDimension / exact
					low, high = min(low, r), max(high, r)
					if seed == 0 {
						at = [3]float64{l.Lambda, exact, l.EffectiveDimension}
					}
				}
			}
			t.Logf("%-19s %-24s %.2f to %.2f of the exact; at λ = %.1e %5.1f of %5.1f", c.name, s.name, low, high, at[0], at[2], at[1])
			least := 0.75
			if s.Sampler == limited { // rows outside the sample do not count
				least = 0.6
			}
			if low < least || high > 1.25 {
				t.Errorf("%s, %s: out of band", c.name, s.name)
			}
		}
	}
}

// dimension returns d_eff(λ) = Σ_q s_q/(s_q + λn).
func (sp spectrum) dimension(lambda float64) float64 {
	d := 0.0
	for _, s := range sp.s {
		d += s / (s + Ridge(lambda, sp.n))
	}
	return d
}
