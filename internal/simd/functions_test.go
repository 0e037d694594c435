package simd

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
)

// testedPaths returns the paths that this machine has, and an interpreter for the others, from
// the best to the portable one.
func testedPaths[T Float](t *testing.T) []*Kernels[T] {
	t.Helper()
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	there := Paths[T]()
	var tested []*Kernels[T]
	for _, a := range all {
		i := slices.IndexFunc(there, func(k *Kernels[T]) bool { return k.Path == a.path })
		if i >= 0 {
			tested = append(tested, there[i])
			continue
		}
		t.Logf("this machine has no %s, so its assembly is interpreted", a.path)
		tested = append(tested, interpreted[T](a))
	}
	return append(tested, there[len(there)-1])
}

// onPaths runs a test for every path that this machine has.
func onPaths[T Float](t *testing.T, test func(t *testing.T, k *Kernels[T])) {
	for _, k := range testedPaths[T](t) {
		t.Run(fmt.Sprintf("%s%d", k.Path, 8*Size[T]()), func(t *testing.T) { test(t, k) })
	}
}

// ulp is the unit in the last place of x in the precision of T. For smaller numbers it is
// that of the smallest normal number.
func ulp[T Float](x float64) float64 {
	_, e := math.Frexp(x)
	if Size[T]() == 4 {
		return math.Ldexp(1, max(e-24, -149))
	}
	return math.Ldexp(1, max(e-53, -1074))
}

// floats returns about n finite numbers of either sign, of all magnitudes from
// the subnormals to limit and equally many on [−8, 8] and on [−limit, limit].
func floats[T Float](n int, limit float64) []T {
	rng := rand.New(rand.NewPCG(7, 7))
	x := []T{0, T(math.Copysign(0, -1)), 1, -1, 0.5, -0.5}
	bits := math.Float64bits(limit)
	bottom := 0.0
	if Size[T]() == 4 {
		bottom = math.Float64frombits(uint64(1023-149) << 52)
	}
	low := math.Float64bits(bottom)
	for range n / 3 {
		v := math.Float64frombits(low + rng.Uint64N(bits-low))
		x = append(x, T(math.Copysign(v, rng.Float64()-0.5)), T(16*rng.Float64()-8), T(limit*(2*rng.Float64()-1)))
	}
	return x
}

// checkUlp applies f to x and compares with want, which returns the exact value of the
// function and its nearest float64.
func checkUlp[T Float](t *testing.T, name string, f func([]T), x []T, want func(x T) (*big.Float, float64), most float64) {
	t.Helper()
	y := append([]T(nil), x...)
	f(y)
	worst, at := 0.0, T(0)
	for i, v := range x {
		exact, rounded := want(v)
		got := float64(y[i])
		if rounded == got || math.IsInf(float64(T(rounded)), 0) && math.IsInf(got, 0) {
			continue
		}
		diff := math.Abs(got - rounded)
		if exact != nil {
			d, _ := new(big.Float).Sub(exact, new(big.Float).SetFloat64(got)).Float64()
			diff = math.Abs(d)
		}
		if e := diff / ulp[T](rounded); !(e <= worst) {
			worst, at = e, v
		}
	}
	t.Logf("%s: %d points, at most %.3f ulp (at %g)", name, len(x), worst, at)
	if !(worst <= most) {
		t.Errorf("%s(%g) is off by %g ulp, more than %g", name, at, worst, most)
	}
}

const digits = 160 // bits of the reference

func bigFloat(s string) *big.Float {
	f, _, err := big.ParseFloat(s, 10, digits, big.ToNearestEven)
	if err != nil {
		panic(err)
	}
	return f
}

var (
	ln2    = bigFloat("0.69314718055994530941723212145817656807550013436025525412068000949339362")
	halfPi = bigFloat("1.57079632679489661923132169163975144209858469968755291048747229615390820314310449931401741267105853399107404326")
)

// taylor sums 1 + z/first·(1 + z/second·(…)).
func taylor(z *big.Float, divisor func(k int) int64) *big.Float {
	one := func() *big.Float { return new(big.Float).SetPrec(digits).SetInt64(1) }
	s := one()
	for k := 26; k >= 1; k-- {
		s.Mul(s, z)
		s.Quo(s, new(big.Float).SetInt64(divisor(k)))
		s.Add(s, one())
	}
	return s
}

// exactExp is 2^n·e^r.
func exactExp(r *big.Float, n int) (*big.Float, float64) {
	s := taylor(r, func(k int) int64 { return int64(k) })
	s.SetMantExp(s, n)
	f, _ := s.Float64()
	return s, f
}

func wantExp[T Float](x T) (*big.Float, float64) {
	if v := float64(x); math.Abs(v) > 750 {
		return nil, math.Exp(v)
	}
	n := math.RoundToEven(float64(x) * math.Log2E)
	r := new(big.Float).SetPrec(digits).SetFloat64(n)
	r.Sub(new(big.Float).SetPrec(digits).SetFloat64(float64(x)), r.Mul(r, ln2))
	return exactExp(r, int(n))
}

func wantExp2[T Float](x T) (*big.Float, float64) {
	if v := float64(x); math.Abs(v) > 1100 {
		return nil, math.Exp2(v)
	}
	n := math.RoundToEven(float64(x))
	r := new(big.Float).SetPrec(digits).SetFloat64(float64(x) - n)
	return exactExp(r.Mul(r, ln2), int(n))
}

// exactSin is sin r.
func exactSin(r *big.Float) (*big.Float, float64) {
	z := new(big.Float).SetPrec(digits).Mul(r, r)
	s := taylor(z.Neg(z), func(k int) int64 { return int64(2*k) * int64(2*k+1) })
	s.Mul(s, r)
	f, _ := s.Float64()
	return s, f
}

func wantCosTurns[T Float](x T) (*big.Float, float64) {
	f := math.Abs(float64(x) - math.RoundToEven(float64(x)))
	r := new(big.Float).SetPrec(digits).SetFloat64(f)
	r.Sub(new(big.Float).SetPrec(digits).SetFloat64(0.25), r)
	r.Mul(r, new(big.Float).SetInt64(4))
	return exactSin(r.Mul(r, halfPi))
}

func TestUlp(t *testing.T) {
	onPaths(t, testUlp[float64])
	onPaths(t, testUlp[float32])
}

func testUlp[T Float](t *testing.T, k *Kernels[T]) {
	small := Size[T]() == 4
	n, most := 2000, 750.0
	if testing.Short() {
		n = 300
	}
	if small {
		most = 110
	}
	apply := func(f Func) func([]T) { return func(x []T) { k.Apply(f, x, new(Params[T])) } }
	bound := func(b64, b32 float64) float64 {
		if small {
			return b32
		}
		return b64
	}
	checkUlp(t, "cosTurns", apply(CosTurns), floats[T](n, 1e30), wantCosTurns, bound(2.8, 2.8))

	// These are the decaying forms, where they are not cut off.
	negative := floats[T](n, most*0.93)
	for i, v := range negative {
		negative[i] = -max(v, -v)
		if !small && negative[i] < -708 || small && negative[i] < -87 {
			negative[i] = 0
		}
	}
	checkUlp(t, "expScaled", func(x []T) { k.Apply(ExpScaled, x, &Params[T]{1}) }, negative, wantExp, bound(1.1, 1.1))
	checkUlp(t, "decay2", apply(Decay2), negative, wantExp2, bound(1.2, 1.1))
	for i, v := range negative {
		negative[i] = -v
	}
	checkUlp(t, "fall2", func(x []T) { k.Apply(Fall2, x, &Params[T]{1}) }, negative, func(x T) (*big.Float, float64) { return wantExp2(-x) }, bound(1.2, 1.1))
}

// TestSpecial checks the values at the ends of the range.
func TestSpecial(t *testing.T) {
	onPaths(t, testSpecial[float64])
	onPaths(t, testSpecial[float32])
}

func testSpecial[T Float](t *testing.T, k *Kernels[T]) {
	inf, nan, zero := math.Inf(1), math.NaN(), 0.0
	huge, subnormal := math.MaxFloat64, 0x1p-1074
	if Size[T]() == 4 {
		huge, subnormal = math.MaxFloat32, 0x1p-149
	}
	type pairs [][2]float64
	power := Params[T]{1, 2}
	power.SetPower(3)
	identity := Params[T]{1, 0}
	identity.SetPower(1)
	for _, c := range []struct {
		name   string
		f      Func
		par    Params[T]
		values pairs
	}{
		{"expScaled", ExpScaled, Params[T]{-1}, pairs{{zero, 1}, {inf, 0}, {-inf, 1}, {-5, 1}, {subnormal, 1}, {huge, 0}}},
		{"decay2", Decay2, Params[T]{}, pairs{{zero, 1}, {-inf, 0}, {inf, 1}, {5, 1}, {-1, 0.5}, {-huge, 0}, {-subnormal, 1}}},
		{"fall2", Fall2, Params[T]{2}, pairs{{zero, 1}, {-zero, 1}, {inf, 0}, {0.5, 0.5}, {5, 1. / 1024}, {huge, 0}, {subnormal, 1}}},
		{"matern12", Matern12, Params[T]{1}, pairs{{zero, 1}, {inf, 0}, {-1, 1}, {huge, 0}}},
		{"matern32", Matern32, Params[T]{3}, pairs{{zero, 1}, {inf, 0}, {-1, 1}, {huge, 0}}},
		{"matern52", Matern52, Params[T]{5}, pairs{{zero, 1}, {inf, 0}, {-1, 1}, {huge, 0}}},
		{"rationalQuadratic", RationalQuadratic, Params[T]{0.5, -1}, pairs{{zero, 1}, {inf, 0}, {-1, 1}, {2, 0.5}}},
		{"power", Power, power, pairs{{1, 27}, {-2, 0}, {inf, inf}, {-inf, -inf}}},
		{"power 1", Power, identity, pairs{{huge, huge}, {3, 3}, {subnormal, subnormal}}},
		{"affine", Affine, Params[T]{2, 1}, pairs{{1, 3}, {inf, inf}}},
		{"arcCosine", ArcCosine, Params[T]{}, pairs{{1, 1}, {2, 1}, {-1, 0}, {-7, 0}, {zero, float64(T(1 / math.Pi))}}},
		{"cosTurns", CosTurns, Params[T]{}, pairs{{zero, 1}, {1, 1}, {0.5, -1}, {0.25, 0}, {huge, 1}, {subnormal, 1}, {inf, nan}, {-inf, nan}, {1e6 + 0.25, 0}}},
	} {
		for _, v := range append(c.values, [2]float64{nan, nan}) {
			x := []T{1, 2, T(v[0]), 3}
			k.Apply(c.f, x, &c.par)
			want := T(v[1])
			if x[2] != want && (x[2] == x[2] || want == want) {
				t.Errorf("%s(%g) = %g, want %g", c.name, v[0], x[2], want)
			}
		}
	}
}

// TestCovariances compares the functions of kernels with their formulas. A
// rounding of the argument a of e^−a costs a ulp for each unit of a.
func TestCovariances(t *testing.T) {
	onPaths(t, testCovariances[float64])
	onPaths(t, testCovariances[float32])
}

func testCovariances[T Float](t *testing.T, k *Kernels[T]) {
	rng := rand.New(rand.NewPCG(1, 3))
	power := Params[T]{0.5, 1.25}
	power.SetPower(7)
	for _, c := range []struct {
		name string
		f    Func
		par  Params[T]
		want func(s float64) float64
		most float64
	}{
		{"gaussian", ExpScaled, Params[T]{-0.5}, func(s float64) float64 { return math.Exp(-s / 2) }, 2},
		{"gaussian, base 2", Fall2, Params[T]{T(math.Log2E / 2)}, func(s float64) float64 { return math.Exp(-s / 2) }, 2},
		{"matern12", Matern12, Params[T]{1}, func(s float64) float64 { return math.Exp(-math.Sqrt(s)) }, 3},
		{"matern32", Matern32, Params[T]{3}, func(s float64) float64 { a := math.Sqrt(3 * s); return (1 + a) * math.Exp(-a) }, 4},
		{"matern52", Matern52, Params[T]{5}, func(s float64) float64 { a := math.Sqrt(5 * s); return (1 + a + a*a/3) * math.Exp(-a) }, 4},
		{"rationalQuadratic", RationalQuadratic, Params[T]{0.25, -2}, func(s float64) float64 { return math.Pow(1+s/4, -2) }, 4},
		{"power", Power, power, func(s float64) float64 { return math.Pow(s/2+1.25, 7) }, 8},
		{"arcCosine", ArcCosine, Params[T]{}, func(s float64) float64 {
			s = min(s, 1)
			return (math.Sqrt((1-s)*(1+s)) + (math.Pi-math.Acos(s))*s) / math.Pi
		}, 4},
	} {
		x := make([]T, 5000)
		for i := range x {
			x[i] = T(math.Exp(rng.NormFloat64() * 3))
		}
		y := append([]T(nil), x...)
		k.Apply(c.f, y, &c.par)
		worst, at := 0.0, T(0)
		for i, v := range y {
			want := c.want(float64(x[i]))
			if want < 1e-30 {
				continue
			}
			e := math.Abs(float64(v)-want) / ulp[T](want) / (1 + math.Abs(math.Log(want)))
			if !(e <= worst) {
				worst, at = e, x[i]
			}
		}
		t.Logf("%s: %.2f ulp for each unit of the exponent (at %g)", c.name, worst, at)
		if !(worst <= c.most) {
			t.Errorf("%s(%g) is off by %g ulp for each unit, more than %g", c.name, at, worst, c.most)
		}
	}
}
