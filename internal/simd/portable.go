package simd

import (
	"math"
	"unsafe"

	"github.com/bkbtuner/bkb/internal/simd/coef"
)

// The portable kernels define the meaning of every other path, in plain Go.

func portable[T Float]() *Kernels[T] {
	k := &Kernels[T]{
		Path:         "portable",
		Lanes:        Lanes[T](),
		Panels:       1,
		L2:           512 << 10,
		Tile:         [statistics]TileFunc[T]{dotTile[T], squaredTile[T], manhattanTile[T], mismatchTile[T]},
		Multiply:     multiply[T],
		MultiplyT:    multiplyT[T],
		MultiplyRows: multiplyRows[T],
		AddRows:      addRows[T](Rows),
		AddRow:       addRows[T](1),
		Squares:      squares[T],
		Gemm:         gemm[T],
		Trsm:         trsm[T],
		Transpose:    transpose[T],
		Pieces:       pieces[T],
		Cholesky:     cholesky[T],
		Drain:        drain[T],
	}
	for f := range k.Func {
		k.Func[f] = elementwise[T](scalars[f])
	}
	return k
}

func dotTile[T Float](k int, a, ha, b, hb, out *T, step, n int) {
	blocks(k, a, ha, b, hb, out, step, n, func(a, b []T, nr int, o []T) { dot2x4(k, a, b, nr, nr, o) })
}

func squaredTile[T Float](k int, a, ha, b, hb, out *T, step, n int) {
	blocks(k, a, ha, b, hb, out, step, n, func(a, b []T, nr int, o []T) { squared2x4(k, a, b, nr, o) })
}

// blocks is a tile by 2×4 pairs at a time, which fit in the registers of any machine.
func blocks[T Float](k int, a, ha, b, hb, out *T, step, n int, add func(a, b []T, nr int, o []T)) {
	tiles(k, a, ha, b, hb, out, step, n, func(as, bs, o []T, nr int) {
		for r := 0; r < Rows; r += 2 {
			for c := 0; c < nr; c += 4 {
				add(as[r:], bs[c:], nr, o[r*nr+c:])
			}
		}
	})
}

func manhattanTile[T Float](k int, a, ha, b, hb, out *T, step, n int) {
	pairs(k, a, ha, b, hb, out, step, n, func(x, y T) T { return T(math.Abs(float64(x - y))) })
}

func mismatchTile[T Float](k int, a, ha, b, hb, out *T, step, n int) {
	pairs(k, a, ha, b, hb, out, step, n, func(x, y T) T {
		if x != y {
			return 1
		}
		return 0
	})
}

// pairs is a tile with any term.
func pairs[T Float](k int, a, ha, b, hb, out *T, step, n int, term func(x, y T) T) {
	tiles(k, a, ha, b, hb, out, step, n, func(as, bs, o []T, nr int) {
		for i := range o {
			r, c := i/nr, i%nr
			s := o[i]
			for l := range k {
				s += term(as[l*Rows+r], bs[l*nr+c])
			}
			o[i] = s
		}
	})
}

// tiles starts n tiles with ha[r] + hb[c] and calls add to sum over k, one tile after the other.
func tiles[T Float](k int, a, ha, b, hb, out *T, step, n int, add func(as, bs, o []T, nr int)) {
	nr := Columns[T]()
	h, hs, o := unsafe.Slice(ha, Rows), unsafe.Slice(hb, n*nr), unsafe.Slice(out, (n-1)*step+Rows*nr)
	for t := range n {
		tile := o[t*step:][:Rows*nr]
		for i := range tile {
			tile[i] = h[i/nr] + hs[t*nr+i%nr]
		}
		if k > 0 {
			add(unsafe.Slice(a, k*Rows), unsafe.Slice(b, n*k*nr)[t*k*nr:][:k*nr], tile, nr)
		}
	}
}

// dot2x4 adds 2×4 inner products to o, of rows of ldo elements.
func dot2x4[T Float](k int, a, b []T, nr, ldo int, o []T) {
	o0, o1 := (*[4]T)(o), (*[4]T)(o[ldo:])
	s00, s01, s02, s03 := o0[0], o0[1], o0[2], o0[3]
	s10, s11, s12, s13 := o1[0], o1[1], o1[2], o1[3]
	for l := range k {
		x, y := (*[2]T)(a[l*Rows:]), (*[4]T)(b[l*nr:])
		x0, x1, y0, y1, y2, y3 := x[0], x[1], y[0], y[1], y[2], y[3]
		s00 += x0 * y0
		s01 += x0 * y1
		s02 += x0 * y2
		s03 += x0 * y3
		s10 += x1 * y0
		s11 += x1 * y1
		s12 += x1 * y2
		s13 += x1 * y3
	}
	*o0, *o1 = [4]T{s00, s01, s02, s03}, [4]T{s10, s11, s12, s13}
}

// squared2x4 adds 2×4 squared distances to o.
func squared2x4[T Float](k int, a, b []T, nr int, o []T) {
	o0, o1 := (*[4]T)(o), (*[4]T)(o[nr:])
	s00, s01, s02, s03 := o0[0], o0[1], o0[2], o0[3]
	s10, s11, s12, s13 := o1[0], o1[1], o1[2], o1[3]
	for l := range k {
		x, y := (*[2]T)(a[l*Rows:]), (*[4]T)(b[l*nr:])
		x0, x1, y0, y1, y2, y3 := x[0], x[1], y[0], y[1], y[2], y[3]
		s00 += (x0 - y0) * (x0 - y0)
		s01 += (x0 - y1) * (x0 - y1)
		s02 += (x0 - y2) * (x0 - y2)
		s03 += (x0 - y3) * (x0 - y3)
		s10 += (x1 - y0) * (x1 - y0)
		s11 += (x1 - y1) * (x1 - y1)
		s12 += (x1 - y2) * (x1 - y2)
		s13 += (x1 - y3) * (x1 - y3)
	}
	*o0, *o1 = [4]T{s00, s01, s02, s03}, [4]T{s10, s11, s12, s13}
}

func multiply[T Float](k, v, u *T, n int) {
	nr := Columns[T]()
	ks, vs, us := unsafe.Slice(k, n*Rows*nr), unsafe.Slice(v, n*nr), unsafe.Slice(u, Rows*Lanes[T]())
	for t := range n {
		for r := range Rows {
			us[r*Lanes[T]()] += dot(ks[(t*Rows+r)*nr:][:nr], vs[t*nr:][:nr])
		}
	}
}

// dot sums in four parts. The length is a multiple of 4.
func dot[T Float](a, b []T) T {
	var s0, s1, s2, s3 T
	for c := 0; c+4 <= len(a) && c+4 <= len(b); c += 4 {
		s0 += a[c] * b[c]
		s1 += a[c+1] * b[c+1]
		s2 += a[c+2] * b[c+2]
		s3 += a[c+3] * b[c+3]
	}
	return (s0 + s1) + (s2 + s3)
}

func multiplyT[T Float](k, u, w *T, n int) {
	nr := Columns[T]()
	ks, us, ws := unsafe.Slice(k, n*Rows*nr), unsafe.Slice(u, Rows), unsafe.Slice(w, n*nr)
	for t := range n {
		wt := ws[t*nr:][:nr]
		tile := ks[t*Rows*nr:][:Rows*nr]
		for r, ur := range us {
			for c, x := range tile[r*nr:][:nr] {
				wt[c] += x * ur
			}
		}
	}
}

func multiplyRows[T Float](a *T, step int, v, u *T, n int) {
	w := n * Columns[T]()
	as, vs, us := unsafe.Slice(a, (Rows-1)*step+w), unsafe.Slice(v, w), unsafe.Slice(u, Rows*Lanes[T]())
	for r := range Rows {
		us[r*Lanes[T]()] += dot(as[r*step:][:w], vs)
	}
}

func addRows[T Float](rows int) func(a *T, step int, u, w *T, n int) {
	return func(a *T, step int, u, w *T, n int) {
		size := n * Columns[T]()
		as, us, ws := unsafe.Slice(a, (rows-1)*step+size), unsafe.Slice(u, rows), unsafe.Slice(w, size)
		for r, ur := range us {
			for c, x := range as[r*step:][:size] {
				ws[c] += x * ur
			}
		}
	}
}

func squares[T Float](k int, b, s *T) {
	if k == 0 {
		return
	}
	nr := Columns[T]()
	sums, bs := unsafe.Slice(s, nr), unsafe.Slice(b, k*nr)
	for c := 0; c < nr; c += 4 {
		var s0, s1, s2, s3 T
		for l := c; l < len(bs); l += nr {
			x := (*[4]T)(bs[l:])
			s0 += x[0] * x[0]
			s1 += x[1] * x[1]
			s2 += x[2] * x[2]
			s3 += x[3] * x[3]
		}
		to := (*[4]T)(sums[c:])
		to[0], to[1], to[2], to[3] = to[0]+s0, to[1]+s1, to[2]+s2, to[3]+s3
	}
}

func gemm[T Float](k int, a, b, _, c *T, ldc, n, keep int, alpha T) {
	nr := Columns[T]()
	cs := unsafe.Slice(c, (Rows-1)*ldc+n*nr)
	var as, bs []T
	if k > 0 {
		as, bs = unsafe.Slice(a, k*Rows), unsafe.Slice(b, n*k*nr)
	}
	for r := 0; keep == 0 && r < Rows; r++ {
		clear(cs[r*ldc:][:n*nr])
	}
	for t := 0; k > 0 && t < n; t++ {
		for r := 0; r < Rows; r += 2 {
			for j := 0; j < nr; j += 4 {
				var s [8]T
				dot2x4(k, as[r:], bs[t*k*nr+j:], nr, 4, s[:])
				for i, v := range s {
					cs[(r+i/4)*ldc+t*nr+j+i%4] += alpha * v
				}
			}
		}
	}
}

func trsm[T Float](k int, a, b, c *T, step, n int) {
	nr := Columns[T]()
	as, cs := unsafe.Slice(a, (k+Rows)*Rows), unsafe.Slice(c, (n-1)*step+Rows*nr)
	var bs []T
	if k > 0 {
		bs = unsafe.Slice(b, (n-1)*step+k*nr)
	}
	for t := range n {
		tile := cs[t*step:][:Rows*nr]
		for l := range k {
			subtractRows(as[l*Rows:][:Rows], bs[t*step+l*nr:][:nr], tile)
		}
		for l := range Rows {
			col, row := as[(k+l)*Rows:][:Rows], tile[l*nr:][:nr]
			for j := range row {
				row[j] *= col[l]
			}
			subtractRows(col[l+1:], row, tile[(l+1)*nr:])
		}
	}
}

// subtractRows sets row r of c to c_r − a_r·b.
func subtractRows[T Float](a, b, c []T) {
	for r, x := range a {
		row := c[r*len(b):][:len(b)]
		for j, y := range b {
			row[j] -= x * y
		}
	}
}

func transpose[T Float](dst *T, step int, src *T, ld, n int) {
	d, s := unsafe.Slice(dst, (4*n-1)*step+4), unsafe.Slice(src, 3*ld+4*n)
	for l := range 4 * n {
		to := (*[4]T)(d[l*step:])
		to[0], to[1], to[2], to[3] = s[l], s[ld+l], s[2*ld+l], s[3*ld+l]
	}
}

func cholesky[T Float](u *T, ok *int) {
	m := unsafe.Slice(u, Leaf*Leaf)
	for j := range Leaf {
		*ok = j
		row := m[j*Leaf:][:Leaf]
		if !(row[j] > 0) {
			return
		}
		root := T(math.Sqrt(float64(row[j])))
		inv := 1 / root
		for i := j + 1; i < Leaf; i++ {
			row[i] *= inv
		}
		row[j] = root
		for k := j + 1; k < Leaf; k++ {
			below := m[k*Leaf:][:Leaf]
			for i := k; i < Leaf; i++ {
				below[i] -= row[k] * row[i]
			}
		}
	}
	*ok = Leaf
}

func pieces[T Float](dst *T, dstStep int, src *T, srcStep, n int) {
	nr := Columns[T]()
	to, from := unsafe.Slice(dst, (n-1)*dstStep+nr), unsafe.Slice(src, (n-1)*srcStep+nr)
	for i := range n {
		copy(to[i*dstStep:][:nr], from[i*srcStep:])
	}
}

func drain[T Float](w *float64, x *T, n int) {
	ws, xs := unsafe.Slice(w, 16*n), unsafe.Slice(x, 16*n)
	for i, v := range xs {
		ws[i] += float64(v)
		xs[i] = 0
	}
}

// elementwise applies f, which takes and returns float64 for both precisions.
func elementwise[T Float](f scalar) func(x *T, n int, par *T) {
	return func(x *T, n int, par *T) {
		p := (*Params[T])(unsafe.Slice(par, len(Params[T]{})))
		p0, p1, exponent := float64(p[0]), float64(p[1]), p.power()
		xs := unsafe.Slice(x, n*TileSize[T]())
		for i, v := range xs {
			xs[i] = T(f(float64(v), p0, p1, exponent))
		}
	}
}

// scalar is a function of one element, its parameters, and the exponent in them.
type scalar func(x, p0, p1 float64, exponent int) float64

// power is the inverse of SetPower.
func (p *Params[T]) power() int {
	n := 0
	for i, mask := range p[2:] {
		if mask != mask {
			n |= 1 << i
		}
	}
	return n
}

var scalars = [functions]scalar{
	Affine:    func(x, p0, p1 float64, _ int) float64 { return p0*x + p1 },
	ExpScaled: func(x, p0, _ float64, _ int) float64 { return decay(min(p0*x, 0)) },
	Decay2: func(x, _, _ float64, _ int) float64 {
		x = max(min(x, 0), -1023)
		n := math.RoundToEven(x)
		return onePlus(x-n, coef.F64.Exp2) * power2(n)
	},
	Fall2: func(x, p0, _ float64, _ int) float64 {
		x = min(p0*x, 1023)
		n := math.RoundToEven(x)
		return onePlus(n-x, coef.F64.Exp2) * power2(-n)
	},
	Matern12: func(x, p0, _ float64, _ int) float64 { return decay(-root(p0 * x)) },
	Matern32: func(x, p0, _ float64, _ int) float64 {
		a := root(p0 * x)
		return (1 + a) * decay(-a)
	},
	Matern52: func(x, p0, _ float64, _ int) float64 {
		a := root(p0 * x)
		return (1 + a*(1+a/3)) * decay(-a)
	},
	RationalQuadratic: func(x, p0, p1 float64, _ int) float64 {
		return decay(p1 * math.Log1p(max(p0*x, 0)))
	},
	Power: func(x, p0, p1 float64, exponent int) float64 {
		out := 1.0
		for b := p0*x + p1; exponent > 0; exponent >>= 1 {
			if exponent&1 == 1 {
				out *= b
			}
			b *= b
		}
		return out
	},
	ArcCosine: func(x, _, _ float64, _ int) float64 {
		x = max(min(x, 1), -1)
		return (math.Sqrt((1-x)*(1+x)) + (math.Pi-math.Acos(x))*x) / math.Pi
	},
	CosTurns: func(x, _, _ float64, _ int) float64 {
		d := 0.25 - math.Abs(x-math.RoundToEven(x))
		return horner(d*d, coef.F64.SinTurn) * d
	},
}

// decay is e^x for x ≤ 0, and 0 below the normal numbers.
func decay(x float64) float64 {
	const (
		ln2High = 6.93147180369123816490e-01 // 32 bits, so that n·ln2High is exact
		ln2Low  = 1.90821492927058770002e-10
		magic   = 3 << 51
	)
	x = max(x, -1023*math.Ln2)
	n := x*math.Log2E + magic - magic
	return onePlus(x-n*ln2High-n*ln2Low, coef.F64.Exp) * power2(n)
}

// power2 is 2^n for −1023 ≤ n ≤ 0, with 0 at the lower end.
func power2(n float64) float64 { return math.Float64frombits(uint64(int64(n)+1023) << 52) }

func onePlus(r float64, c []float64) float64 { return 1 + r*horner(r, c) }

func horner(x float64, c []float64) float64 {
	s := c[len(c)-1]
	for i := len(c) - 2; i >= 0; i-- {
		s = s*x + c[i]
	}
	return s
}

// root is √x, cut as the polynomials of the Matérn kernels need it.
func root(x float64) float64 { return min(math.Sqrt(max(x, 0)), 1023) }
