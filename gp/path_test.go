package gp_test

import (
	"errors"
	"math"
	"testing"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
)

// coordinates are the features of the linear kernel, without any error.
type coordinates struct{ d int }

func (c coordinates) Features() int { return c.d }

func (c coordinates) Apply(dst []float64, x kernel.Rows) error {
	p, ok := x.(*kernel.Points[float64])
	if !ok {
		return errors.New("not dense")
	}
	for i := range p.Len() {
		copy(dst[i*c.d:], p.Row(i))
	}
	return nil
}

// With exact features, paths have the moments of the joint posterior, also for DTC far
// from the inducing points.
func TestPathsHaveTheirMoments(t *testing.T) {
	racetest.Alone(t)
	rng := seeded(t)
	const d, count = 4, 20000
	k := must(kernel.NewLinear(1))
	x, q := uniform(rng, 10, d), uniform(rng, 3, d)
	for _, a := range []gp.Approximation{gp.DTC, gp.SoR} {
		s := must(gp.NewSparse(k, x.Slice(0, 2), gp.Data{X: x, Y: normals(rng, 10)},
			gp.SparseOptions{NoiseVariance: 0.3, Approximation: a, Mean: 2}))
		if err := s.ObserveVariance(x.Slice(0, 1)); err != nil {
			t.Fatal(err)
		}
		mean, cov, err := s.Covariance(q)
		if err != nil {
			t.Fatal(err)
		}
		sum, sq := make([]float64, 3), make([]float64, 9)
		for range count {
			f := must(must(s.Path(coordinates{d}, rng)).At(q))
			for i := range 3 {
				sum[i] += f[i] / count
				for j := range 3 {
					sq[i*3+j] += (f[i] - mean[i]) * (f[j] - mean[j]) / count
				}
			}
		}
		for i := range 3 { // six standard errors
			if e := math.Abs(sum[i] - mean[i]); e > 6*math.Sqrt(cov[i*3+i]/count) {
				t.Errorf("%v: mean %d off by %g", a, i, e)
			}
			for j := range 3 {
				se := math.Sqrt((cov[i*3+i]*cov[j*3+j] + cov[i*3+j]*cov[i*3+j]) / count)
				if e := math.Abs(sq[i*3+j] - cov[i*3+j]); e > 6*se+1e-9 {
					t.Errorf("%v: covariance %d, %d off by %g, standard error %g", a, i, j, e, se)
				}
			}
		}
	}
}

func TestPathIsOneFunction(t *testing.T) {
	rng := seeded(t)
	k, x, q := must(kernel.NewLinear(1)), uniform(rng, 10, 3), uniform(rng, 300, 3)
	s := must(gp.NewSparse(k, x.Slice(0, 2), gp.Data{X: x, Y: normals(rng, 10)}, gp.SparseOptions{NoiseVariance: 0.3}))
	if _, err := s.Path(nil, rng); err == nil {
		t.Error("DTC without features: accepted")
	}
	p := must(s.Path(coordinates{3}, rng))
	all := must(p.At(q))
	if err := s.Observe(gp.Data{X: q, Y: normals(rng, 300)}); err != nil {
		t.Fatal(err)
	}
	for i := range 300 {
		near(t, "path", must(p.At(q.Slice(i, i+1))), all[i:i+1], 1e-12)
	}
	if _, err := p.At(uniform(rng, 1, 2)); err == nil {
		t.Error("other dimension: accepted")
	}
}
