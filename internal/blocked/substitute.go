package blocked

import (
	"gonum.org/v1/gonum/floats"

	"github.com/bkbtuner/bkb/internal/simd"
)

// group is the number of rows that substitutions take at a time, and columns.
const group = 4

// Forward sets b = l⁻¹·b for the leading triangle of order len(b) of a lower triangular
// matrix l. It has the bits of a loop over rows with gonum's Dot, and takes 4 rows at a
// time.
func Forward(l Matrix[float64], b []float64) {
	l.checkSquare("l")
	i, kern := 0, simd.For[float64]()
	if kern.Dots != nil {
		buf := take[float64]()
		defer buf.give()
		sums := sized(&buf.c, group*group)
		for ; i+group <= len(b); i += group {
			clear(sums)
			if i > 0 {
				kern.Dots(&l.Data[i*l.Stride], l.Stride, &b[0], &sums[0], i/group)
			}
			for r := range group {
				// As in Dot the last products go to the first sum.
				row, s := l.row(i+r), sums[group*r:][:group]
				for c := i; c < i+r; c++ {
					s[0] += float64(row[c] * b[c])
				}
				b[i+r] = (b[i+r] - ((s[1] + s[3]) + (s[0] + s[2]))) / row[i+r]
			}
		}
	}
	for ; i < len(b); i++ {
		row := l.row(i)
		b[i] = (b[i] - floats.Dot(row[:i], b[:i])) / row[i]
	}
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
	u := sized(&buf.c, group)
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
