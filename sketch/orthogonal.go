package sketch

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/mat"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// MaxOrthogonal is the largest number of frequencies of [NewOrthogonal] that are
// orthogonal to one another. Independent directions are nearly orthogonal for large d.
const MaxOrthogonal = 512

// NewOrthogonal is [NewFourier] with frequencies that are orthogonal in blocks of min(d, 512),
// before the length scales. W = diag(r)Q, where Q has the rows of a random orthogonal matrix and
// r_j are the norms of independent frequencies. The mean is the same, but the error is smaller
// while d is below a few hundred. It is for the isotropic kernels Gaussian, Matérn and rational
// quadratic, also scaled. M must be even. Building costs O(Md·min(d, 512)).
//
// The source is Yu et al. (2016), Orthogonal Random Features. Its errors are those of NewFourier.
func NewOrthogonal(k kernel.Kernel, d, m int, seed uint64) (FeatureMap, error) {
	return newOrthogonal(context.Background(), k, d, m, seed)
}

// newOrthogonal is NewOrthogonal. ctx can end it between blocks.
func newOrthogonal(ctx context.Context, k kernel.Kernel, d, m int, seed uint64) (FeatureMap, error) {
	t, err := newPairs(Orthogonal, k, d, m, seed, isotropic()...)
	if err != nil {
		return nil, err
	}
	f := &dense{target: t, rows: m / 2, wt: make([]float64, d*(m/2))}
	size, set := d, f.setSquare
	if d > MaxOrthogonal {
		size, set = MaxOrthogonal, f.setThin
	}
	for j0 := 0; j0 < f.rows; j0 += size {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		set(j0, t.rng(j0/size))
	}
	return f.finish(pairs, t.scale(0.5)), nil
}

// setThin draws the rest of W from row j0 on, at most MaxOrthogonal rows. Row i does
// not depend on how many come after it.
func (m *dense) setThin(j0 int, rng *rand.Rand) {
	d, rows := m.Dim(), min(MaxOrthogonal, m.rows-j0)
	q := blas64.General{Rows: 0, Cols: d, Stride: d, Data: make([]float64, rows*d)}
	products, w := make([]float64, rows), make([]float64, d)
	for i := range rows {
		radius := m.radius(rng)
		v := blas64.Vector{N: d, Inc: 1, Data: q.Data[i*d : (i+1)*d]}
		for c := range v.Data {
			v.Data[c] = rng.NormFloat64()
		}
		q.Rows = i
		orthogonalise(v, q, products)
		for c, a := range v.Data {
			w[c] = radius * a / m.lengthScale(c)
		}
		m.setRow(j0+i, w)
	}
}

// orthogonalise makes v a unit vector orthogonal to the rows of q, by the method of Gram and
// Schmidt. Its second round removes what rounding leaves of the first (Giraud et al., 2005).
func orthogonalise(v blas64.Vector, q blas64.General, products []float64) {
	if q.Rows > 0 {
		p := blas64.Vector{N: q.Rows, Inc: 1, Data: products[:q.Rows]}
		for range 2 {
			blas64.Gemv(blas.NoTrans, 1, q, v, 0, p)
			blas64.Gemv(blas.Trans, -1, q, p, 1, v)
		}
	}
	blas64.Scal(1/blas64.Nrm2(v), v)
}

// setSquare draws rows j0 … j0+d−1 of W, of which there may be fewer left.
func (m *dense) setSquare(j0 int, rng *rand.Rand) {
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

// haar returns a uniformly random d×d orthogonal matrix. It is Q of the QR factorisation of a
// Gaussian matrix, with the signs for which R has a positive diagonal (Mezzadri, How to generate
// random matrices from the classical compact groups, 2007).
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
