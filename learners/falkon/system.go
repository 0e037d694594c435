package falkon

import (
	"context"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/simd"
)

// system is Wβ = b of (4.14), in the notation of the package documentation,
//
//	W = R⁻ᵀ(F⁻K_nMᵀ S K_nM F⁻ᵀ/n + λI)R⁻¹,   b = R⁻ᵀF⁻K_nMᵀ S y/n,
//
// where S are the weights of the rows. All vectors are q×c.
type system struct {
	pre     *preconditioner
	op      *kernel.Operator
	targets targets
	n, c    int
	rows    []float64 // S, or nil for I
	check   func(row int, y []float64)
	lambda  float64

	z []float64 // F⁻K_nMᵀ S y/n, for every λ
	b []float64
	// yy is Σ_i s_i y_i²/n, column by column.
	yy []float64

	used, coordinates []float64 // memory
	passes            int
}

func (s *system) rank() int { return s.pre.rank() }

// read makes the first pass, for z and yy.
func (s *system) read(ctx context.Context) error {
	q, u := s.rank(), s.op.Cols()
	s.z, s.yy = make([]float64, q*s.c), make([]float64, s.c)
	zero := make([]float64, u*s.c)
	s.targets.observe(s.square)
	err := s.op.GramFunc(ctx, zero, zero, func(row int, t []float64) {
		copy(t, s.targets.at(row)[:len(t)])
		s.weigh(row, t, s.c)
	})
	if err != nil {
		return err
	}
	s.passes++
	s.pre.coordinates(s.z, zero, s.c)
	for i := range s.z {
		s.z[i] /= float64(s.n)
	}
	return nil
}

// square adds rows to yy.
func (s *system) square(row int, y []float64) {
	if s.check != nil {
		s.check(row, y)
	}
	for i, v := range y {
		w := 1 / float64(s.n)
		if s.rows != nil {
			w *= s.rows[row+i/s.c]
		}
		s.yy[i%s.c] += w * v * v
	}
}

// weigh multiplies rows of t, c columns, by their weights.
func (s *system) weigh(row int, t []float64, c int) {
	if s.rows == nil {
		return
	}
	for i := range len(t) / c {
		w := s.rows[row+i]
		for j := range c {
			t[i*c+j] *= w
		}
	}
}

// regularise sets b for a new preconditioner.
func (s *system) regularise(lambda float64) {
	s.lambda = lambda
	s.b = append(s.b[:0], s.z...)
	s.pre.down(s.b, s.c)
}

// apply sets dst = W·β for c columns, in one pass over the data.
func (s *system) apply(ctx context.Context, dst, beta []float64, c int) error {
	v := simd.Sized(&s.coordinates, s.rank()*c)
	a := simd.Sized(&s.used, s.op.Cols()*c)
	copy(v, beta)
	s.pre.up(v, c)
	s.pre.factor.coefficients(a, v, c)
	var err error
	if s.rows == nil {
		err = s.op.Gram(ctx, a, a, nil)
	} else {
		err = s.op.GramFunc(ctx, a, a, func(row int, t []float64) { s.weigh(row, t, c) })
	}
	if err != nil {
		return err
	}
	s.passes++
	s.pre.factor.coordinates(dst, a, c)
	for i := range dst {
		dst[i] = dst[i]/float64(s.n) + s.lambda*v[i]
	}
	s.pre.down(dst, c)
	return nil
}

// coefficients returns the coefficients of the function β, used×c.
func (s *system) coefficients(beta []float64) []float64 {
	v := append([]float64(nil), beta...)
	s.pre.up(v, s.c)
	a := make([]float64, s.op.Cols()*s.c)
	s.pre.factor.coefficients(a, v, s.c)
	return a
}
