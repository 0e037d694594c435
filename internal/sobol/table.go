package sobol

import (
	_ "embed"
	"fmt"
	"strings"
)

// TableDims is the number of coordinates with direction numbers of their own. They belong
// to all primitive polynomials of degree 13 and less.
const TableDims = 1111

//go:embed joe-kuo-6.txt
var table string

// maxDegree is the largest degree of the table's polynomials.
const maxDegree = 13

// row is one line of the table. It has the polynomial xˢ + a₁xˢ⁻¹ + … + aₛ₋₁x + 1, with the
// bits a₁ … aₛ₋₁ written as the number A, and the initial direction numbers mₖ, which are
// odd and less than 2ᵏ.
type row struct {
	dim, degree, a uint32
	m              [maxDegree]uint32
}

// rows returns the first n rows of the table.
func rows(n int) []row {
	out := make([]row, 0, n)
	for line := range strings.Lines(table) {
		if len(out) == n {
			break
		}
		if line[0] == '#' {
			continue
		}
		var numbers [3 + maxDegree]uint32
		fields := 0
		for field := range strings.FieldsSeq(line) {
			for _, digit := range []byte(field) {
				numbers[fields] = 10*numbers[fields] + uint32(digit-'0')
			}
			fields++
		}
		out = append(out, row{numbers[0], numbers[1], numbers[2], [maxDegree]uint32(numbers[3:])})
	}
	if len(out) != n {
		panic(fmt.Sprintf("sobol: the table has %d rows, not %d", len(out), n))
	}
	return out
}

// width is how many direction numbers a coordinate has. That many bits of an index count,
// and that many bits of a coordinate come from the net.
const width = 32

// directions are the numbers v₁ … v₃₂ of one coordinate, as fractions of 2³².
type directions [width]uint32

// firstDirections are those of coordinate 0, the van der Corput sequence.
func firstDirections() (v directions) {
	for k := range v {
		v[k] = 1 << (width - 1 - k)
	}
	return v
}

// directions continues the initial numbers by the polynomial's recurrence,
// vₖ = a₁vₖ₋₁ ⊕ … ⊕ aₛ₋₁vₖ₋ₛ₊₁ ⊕ vₖ₋ₛ ⊕ 2⁻ˢvₖ₋ₛ.
func (r row) directions() (v directions) {
	s := int(r.degree)
	for k := range v {
		if k < s {
			v[k] = r.m[k] << (width - 1 - k)
			continue
		}
		v[k] = v[k-s] ^ v[k-s]>>s
		for i := 1; i < s; i++ {
			if r.a>>(s-1-i)&1 == 1 {
				v[k] ^= v[k-i]
			}
		}
	}
	return v
}
