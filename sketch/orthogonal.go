package sketch

import (
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// NewOrthogonal is [NewFourier] with frequencies that are orthogonal in blocks
// of d (before the length scales): W = diag(r)Q, Q a random orthogonal matrix
// and r_j the norms of independent frequencies. Each frequency is distributed as
// in NewFourier, so that the mean is the same, but the error is smaller: the map
// to prefer while d is below a few hundred. For the isotropic kernels: Gaussian,
// Matérn, rational quadratic, also scaled. M must be even. Building costs O(Md²).
//
// Source: Yu et al., Orthogonal random features, 2016. Errors: as NewFourier.
func NewOrthogonal(k kernel.Kernel, d, m int, seed uint64) (FeatureMap, error) {
	t, err := newPairs(Orthogonal, k, d, m, seed, isotropic...)
	if err != nil {
		return nil, err
	}
	f := &dense{target: t, rows: m / 2, wt: make([]float64, d*(m/2))}
	for j0 := 0; j0 < f.rows; j0 += d {
		f.setBlock(j0, t.rng(j0/d))
	}
	return f.finish(pairs, t.scale(0.5)), nil
}

// setBlock draws rows j0 … j0+d−1 of W, of which there may be fewer left.
func (m *dense) setBlock(j0 int, rng *rand.Rand) {
	d := m.Dim()
	q := haar(d, rng)
	w := make([]float64, d)
	for i := range d {
		radius := m.radius(rng)
		if j0+i >= m.rows {
			return
		}
		for c := range w {
			w[c] = radius * q.At(i, c) / m.lengthScale(c)
		}
		m.setRow(j0+i, w)
	}
}

// radius draws the norm of one frequency for ℓ = 1.
func (t *target) radius(rng *rand.Rand) float64 {
	square := 0.0
	for range t.Dim() {
		z := rng.NormFloat64()
		square += z * z
	}
	return math.Sqrt(square) * t.stretch(rng)
}

// haar returns a random d×d orthogonal matrix, all alike: Q of the QR
// factorisation of a Gaussian matrix, with the signs for which R has a positive
// diagonal (Mezzadri, How to generate random matrices from the classical compact
// groups, 2007).
func haar(d int, rng *rand.Rand) *mat.Dense {
	g := mat.NewDense(d, d, nil)
	for i := range d {
		for j := range d {
			g.Set(i, j, rng.NormFloat64())
		}
	}
	var qr mat.QR
	qr.Factorize(g)
	var q, r mat.Dense
	qr.QTo(&q)
	qr.RTo(&r)
	for j := range d {
		if r.At(j, j) < 0 {
			for i := range d {
				q.Set(i, j, -q.At(i, j))
			}
		}
	}
	return &q
}
