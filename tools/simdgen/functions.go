package main

import (
	"math"
	"slices"

	"github.com/bkbtuner/bkb/internal/simd/coef"
)

func (g *program) coef() coef.Set {
	if g.p.bits == 32 {
		return coef.F32
	}
	return coef.F64
}

// The low parts of constants that need more precision than a float64.
const (
	ln2High = 6.93147180369123816490e-01 // 32 bits, so that n·ln2High is exact
	ln2Low  = 1.90821492927058770002e-10
	rootTwo = math.Sqrt2 / 2
)

// onePlus returns 1 + r·c(r).
func (g *program) onePlus(r value, c []float64) value {
	return g.fma(g.poly(r, c), r, g.constant(1))
}

// remainder splits x into an integer n and r = x − n·ln 2. It returns r and n plus
// the bias of the format, in the lowest bits.
func (g *program) remainder(x value, bias float64) (r, n, bits value) {
	m := g.constant(g.magic() + bias)
	bits = g.fma(x, g.constant(math.Log2E), m)
	n = g.sub(bits, m)
	hi, lo := g.constant(ln2High), g.constant(ln2Low)
	if g.p.bits == 32 {
		h := float64(float32(math.Ln2))
		hi, lo = g.constant(h), g.constant(math.Ln2-h)
	}
	return g.fnma(n, lo, g.fnma(n, hi, x)), n, bits
}

// decay is e^x for x ≤ 0. Below the smallest normal number it is 0.
func (g *program) decay(x value) value {
	x = g.max(x, g.constant(-g.bias()*math.Ln2)) // there 2^n has the bits of 0
	r, _, bits := g.remainder(x, g.bias())
	return g.mul(g.onePlus(r, g.coef().Exp), g.shl(bits, g.fraction()))
}

// decay2 is 2^min(x, 0), like decay.
func decay2(g *program, x value) value {
	if g.masks {
		return g.tabulated2(x)
	}
	x = g.max(g.min(x, g.constant(0)), g.constant(-g.bias()))
	m := g.constant(g.magic() + g.bias())
	bits := g.add(x, m)
	scale := g.shl(bits, g.fraction())
	f := g.sub(x, g.sub(bits, m))
	return g.mul(g.onePlus(f, g.coef().Exp2), scale)
}

// tabulated2 is decay2 with a table of roots of two, which leaves a shorter polynomial. With
// x = n + j/2^b + f it is 2^n·2^(j/2^b)·2^f. The first factor is added to the exponent of the
// second.
func (g *program) tabulated2(x value) value {
	b := 3
	if g.p.bits == 32 {
		b = 4
	}
	x = g.min(x, g.constant(0))
	bits := g.add(x, g.constant(math.Ldexp(g.magic(), -b))) // n·2^b + j
	roots := make([]uint64, 1<<b)
	for j := range roots { // without the j that the shift leaves behind the exponent
		roots[j] = g.p.float(math.Exp2(float64(j)/float64(len(roots)))) - uint64(j)<<(g.fraction()-b)
	}
	root := g.lookup(roots, bits)
	scale := g.iaddFrom(x, g.constant(1-g.bias()), root, g.shl(bits, g.fraction()-b))
	f := g.reduce(x, b)
	return g.fma(g.mul(scale, f), g.poly(f, g.coef().Near2), scale)
}

// fall2 is 2^(−par0·x) for par0·x ≥ 0, like decay, for Gaussian, Laplace and Hamming.
func fall2(g *program, x value) value {
	x = g.min(g.mul(x, g.param(0)), g.constant(g.bias()))
	m := g.constant(g.magic() + g.bias())
	bits := g.sub(m, x)
	scale := g.shl(bits, g.fraction())
	f := g.add(x, g.sub(bits, m)) // x minus the nearest integer
	c := slices.Clone(g.coef().Exp2)
	for i := 0; i < len(c); i += 2 {
		c[i] = -c[i]
	}
	return g.mul(g.onePlus(f, c), scale)
}

// expScaled is e^min(par0·x, 0).
func expScaled(g *program, x value) value {
	return g.decay(g.min(g.mul(x, g.param(0)), g.constant(0)))
}

// root is √(par0·x), at least 0. It is bounded above where e^−a is 0 anyway, so that a
// polynomial in it stays finite.
func root(g *program, x value) value {
	return g.min(g.sqrt(g.max(g.mul(x, g.param(0)), g.constant(0))), g.constant(g.bias()))
}

func (g *program) negate(x value) value { return g.xor(x, g.raw(1<<(g.p.bits-1))) }

func matern12(g *program, x value) value { return g.decay(g.negate(root(g, x))) }

func matern32(g *program, x value) value {
	a := root(g, x)
	e := g.decay(g.negate(a))
	return g.fma(a, e, e)
}

func matern52(g *program, x value) value {
	a := root(g, x)
	e := g.decay(g.negate(a))
	q := g.fma(g.fma(a, g.constant(1./3), g.constant(1)), a, g.constant(1))
	return g.mul(q, e)
}

// log1p is log(1 + u) for u ≥ 0, and corrects the rounding of 1 + u.
func (g *program) log1p(u value) value {
	one := g.constant(1)
	v := g.add(u, one)
	lost := g.div(g.sub(u, g.sub(v, one)), v)
	// v = m·2^e with √½ ≤ m < √2.
	low := g.p.float(rootTwo)
	shifted := g.iadd(v, g.raw(g.p.float(1)-low))
	big := math.Ldexp(1, g.fraction())
	e := g.sub(g.or(g.shr(shifted, g.fraction()), g.raw(g.p.float(big))), g.constant(big+g.bias()))
	m := g.iadd(g.and(shifted, g.raw(uint64(1)<<g.fraction()-1)), g.raw(low))
	s := g.div(g.sub(m, one), g.add(m, one))
	z := g.mul(s, s)
	l := g.fma(g.mul(s, z), g.poly(z, g.coef().Log), g.add(s, s))
	return g.fma(e, g.constant(math.Ln2), g.add(l, lost))
}

// rationalQuadratic is (1 + par0·x)^par1 for a negative par1.
func rationalQuadratic(g *program, x value) value {
	u := g.max(g.mul(x, g.param(0)), g.constant(0))
	largest := math.MaxFloat64
	if g.p.bits == 32 {
		largest = math.MaxFloat32
	}
	k := g.decay(g.mul(g.log1p(g.min(u, g.constant(largest))), g.param(1)))
	return g.and(k, g.compare(notEqual, u, g.constant(math.Inf(1))))
}

// power is (par0·x + par1)^p for p < 128. Bit i of p is set if parameter 2+i has all bits
// set.
func power(g *program, x value) value {
	one := g.constant(1)
	b := affine(g, x)
	out := g.choose(g.param(2), b, one)
	for i := 1; i < 7; i++ {
		b = g.mul(b, b)
		out = g.mul(out, g.choose(g.param(2+i), b, one))
	}
	return out
}

func affine(g *program, x value) value { return g.fma(x, g.param(0), g.param(1)) }

// arcCosine is (sin θ + (π − θ) cos θ)/π of x = cos θ.
func arcCosine(g *program, x value) value {
	one, half := g.constant(1), g.constant(0.5)
	x = g.max(g.min(x, one), g.constant(-1))
	// acos |x| = 2 asin √((1 − |x|)/2) near 1, π/2 − asin |x| elsewhere.
	a := g.abs(x)
	near := g.compare(less, half, a)
	z := g.choose(near, g.mul(g.sub(one, a), half), g.mul(a, a))
	t := g.choose(near, g.sqrt(z), a)
	t = g.fma(g.mul(g.poly(z, g.coef().Asin), z), t, t)
	angle := g.choose(near, g.add(t, t), g.sub(g.constant(math.Pi/2), t))
	rest := g.choose(g.compare(less, x, g.constant(0)), angle, g.sub(g.constant(math.Pi), angle))
	sin := g.sqrt(g.mul(g.sub(one, x), g.add(one, x)))
	return g.mul(g.fma(rest, x, sin), g.constant(1/math.Pi))
}

// cosTurns is cos 2πx. Whole turns and the distance to the nearest zero are exact, so that
// the result is right for every x.
func cosTurns(g *program, x value) value {
	f := g.sub(x, g.round(x))
	d := g.sub(g.constant(0.25), g.abs(f))
	return g.mul(g.poly(g.mul(d, d), g.coef().SinTurn), d)
}

// functions are the element-wise functions in the order of simd.Func.
var functions = []struct {
	name, doc string
	body      func(g *program, x value) value
}{
	{"affine", "par0·x + par1", affine},
	{"expScaled", "e^min(par0·x, 0), 0 below the normal numbers", expScaled},
	{"decay2", "2^min(x, 0), 0 below the normal numbers", decay2},
	{"fall2", "2^(−par0·x) for par0·x ≥ 0, 0 below the normal numbers", fall2},
	{"matern12", "e^−a, a = √(par0·x)", matern12},
	{"matern32", "(1 + a) e^−a, a = √(par0·x)", matern32},
	{"matern52", "(1 + a + a²/3) e^−a, a = √(par0·x)", matern52},
	{"rationalQuadratic", "(1 + par0·x)^par1", rationalQuadratic},
	{"power", "(par0·x + par1)^p, p in the masks from par2 on", power},
	{"arcCosine", "(sin θ + (π − θ) cos θ)/π, cos θ = x", arcCosine},
	{"cosTurns", "cos 2πx", cosTurns},
}
