package blocked

import (
	"gonum.org/v1/gonum/floats"

	"github.com/bkbtuner/bkb/internal/simd"
)

// group is the number of rows that substitutions take at a time, and columns.
const group = 4

// Forward sets b = l⁻¹·b for the leading triangle of order len(b) of a lower triangular matrix l.
// It has the bits of a loop over rows with gonum's Dot, and takes 4 rows at a time.
func Forward(l Matrix[float64], b []float64) {
	l.checkSquare("l")
	buf := take[float64]()
	defer buf.give()
	f := newForward(l, b, buf)
	for f.next() {
	}
}

// ForwardTwice sets b = l⁻¹·b and c = m⁻¹·b, where c is as long as b. It has the bits of
// [Forward]. The second solution follows the first at a distance of a few rows, so that
// neither has to wait for its own last quotient.
func ForwardTwice(l, m Matrix[float64], b, c []float64) {
	l.checkSquare("l")
	m.checkSquare("m")
	buf, more := take[float64](), take[float64]()
	defer buf.give()
	defer more.give()
	first, second := newForward(l, b, buf), newForward(m, c, more)
	for first.next() {
		copy(c[second.i:], b[second.i:first.i])
		second.next()
	}
}

// forward is a solution in progress, which has reached row i.
type forward struct {
	l    Matrix[float64]
	b    []float64
	i    int
	dots func(a *float64, step int, x, s *float64, n int)
	sums *[group * group]float64
}

func newForward(l Matrix[float64], b []float64, buf *buffers[float64]) forward {
	return forward{l: l, b: b, dots: simd.For[float64]().Dots, sums: (*[group * group]float64)(simd.Sized(&buf.c, group*group))}
}

// next solves the next rows. It returns false after the last one.
func (f *forward) next() bool {
	i, b, stride := f.i, f.b, f.l.Stride
	if f.dots == nil || i+group > len(b) {
		if i == len(b) {
			return false
		}
		row := f.l.row(i)
		b[i] = (b[i] - floats.Dot(row[:i], b[:i])) / row[i]
		f.i++
		return true
	}
	s := f.sums
	*s = [group * group]float64{}
	if i > 0 {
		f.dots(&f.l.Data[i*stride], stride, &b[0], &s[0], i/group)
	}
	// As in Dot the last products go to the first sum.
	x, at := (*[group]float64)(b[i:]), f.l.Data[i*stride+i:]
	r1, r2, r3 := (*[2]float64)(at[stride:]), (*[3]float64)(at[2*stride:]), (*[4]float64)(at[3*stride:])
	x0 := (x[0] - ((s[1] + s[3]) + (s[0] + s[2]))) / at[0]
	x1 := (x[1] - ((s[5] + s[7]) + ((s[4] + float64(r1[0]*x0)) + s[6]))) / r1[1]
	x2 := (x[2] - ((s[9] + s[11]) + ((s[8] + float64(r2[0]*x0) + float64(r2[1]*x1)) + s[10]))) / r2[2]
	x3 := (x[3] - ((s[13] + s[15]) + ((s[12] + float64(r3[0]*x0) + float64(r3[1]*x1) + float64(r3[2]*x2)) + s[14]))) / r3[3]
	*x = [group]float64{x0, x1, x2, x3}
	f.i += group
	return true
}

// Backward sets b = l⁻ᵀ·b. It has the bits of a loop over rows with gonum's AddScaled. See
// [Forward].
func Backward(l Matrix[float64], b []float64) {
	l.checkSquare("l")
	i, kern := len(b), simd.For[float64]()
	for ; i > 0 && (kern.Steps == nil || i%group != 0); i-- {
		row := l.row(i - 1)
		b[i-1] /= row[i-1]
		floats.AddScaled(b[:i-1], -b[i-1], row[:i-1])
	}
	if i == 0 {
		return
	}
	buf := take[float64]()
	defer buf.give()
	u := simd.Sized(&buf.c, group)
	for i -= group; i >= 0; i -= group {
		for r := group - 1; r >= 0; r-- {
			row := l.row(i + r)
			b[i+r] /= row[i+r]
			u[r] = -b[i+r]
			for c := i; c < i+r; c++ {
				b[c] += float64(u[r] * row[c])
			}
		}
		if i > 0 {
			kern.Steps(&l.Data[i*l.Stride], l.Stride, &u[0], &b[0], i/group)
		}
	}
}
