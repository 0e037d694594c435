package kernel_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
)

// must returns k, because the constructors under test have valid arguments here.
func must[K kernel.Kernel](k K, err error) K {
	if err != nil {
		panic(err)
	}
	return k
}

func gaussianRows(d int) kerneltest.Gen {
	return func(rng *rand.Rand, n int) kernel.Rows {
		x := kernel.NewPoints[float64](n, d, nil)
		for i := range x.Data() {
			x.Data()[i] = rng.NormFloat64()
		}
		return x
	}
}

func categoryRows(d, categories int) kerneltest.Gen {
	return func(rng *rand.Rand, n int) kernel.Rows {
		x := kernel.NewPoints[float64](n, d, nil)
		for i := range x.Data() {
			x.Data()[i] = float64(rng.IntN(categories))
		}
		return x
	}
}

func float32Rows(gen kerneltest.Gen) kerneltest.Gen {
	return func(rng *rand.Rand, n int) kernel.Rows {
		return kernel.ConvertPoints[float32](gen(rng, n).(*kernel.Points[float64]))
	}
}

// sparseRows zeroes about half of the coordinates.
func sparseRows(gen kerneltest.Gen) kerneltest.Gen {
	return func(rng *rand.Rand, n int) kernel.Rows {
		x := gen(rng, n).(*kernel.Points[float64])
		for i := range n {
			for c := range x.Row(i) {
				if rng.IntN(2) == 0 {
					x.Row(i)[c] = 0
				}
			}
		}
		return kernel.Sparse(x)
	}
}

func wordRows(rng *rand.Rand, n int) kernel.Rows {
	words := make(kernel.List[string], n)
	for i := range words {
		b := make([]byte, rng.IntN(7))
		for c := range b {
			b[c] = "abc"[rng.IntN(3)]
		}
		words[i] = string(b)
	}
	return words
}

// spectrum is the 2-spectrum kernel of strings, the inner product of the counts of all
// pairs of neighbouring letters (Leslie et al. 2002).
var spectrum = &kernel.Pairwise[string]{Name: "spectrum", Func: func(x, y string) float64 {
	sum := 0
	for i := 0; i+2 <= len(x); i++ {
		for j := 0; j+2 <= len(y); j++ {
			if x[i:i+2] == y[j:j+2] {
				sum++
			}
		}
	}
	return float64(sum)
}}

func resolveSpectrum(s kernel.Spec) (kernel.Kernel, error) {
	if s.Name == spectrum.Name {
		return spectrum, nil
	}
	return nil, &kernel.SpecError{Name: s.Name, Reason: "unknown"}
}

// formula is an oracle written from the definition.
type formula func(x, y []float64) float64

type kernelCase struct {
	name string
	k    kernel.Kernel
	gen  kerneltest.Gen
	want formula // nil if it has no independent formula here
}

var ard = []float64{0.7, 1.3, 2.9}

// r2 is the squared distance in units of ls.
func r2(x, y, ls []float64) float64 {
	sum := 0.0
	for c := range x {
		sum += math.Pow((x[c]-y[c])/ls[c%len(ls)], 2)
	}
	return sum
}

func inner(x, y, ls []float64) float64 {
	sum := 0.0
	for c := range x {
		sum += (x[c] / ls[c%len(ls)]) * (y[c] / ls[c%len(ls)])
	}
	return sum
}

func arcCosine(x, y, ls []float64) float64 {
	xx, yy := math.Sqrt(inner(x, x, ls)), math.Sqrt(inner(y, y, ls))
	if xx*yy == 0 {
		return 0
	}
	theta := math.Acos(max(-1, min(1, inner(x, y, ls)/(xx*yy))))
	return xx * yy * (math.Sin(theta) + (math.Pi-theta)*math.Cos(theta)) / math.Pi
}

func hamming(x, y, ls []float64) float64 {
	product := 1.0
	for c := range x {
		if x[c] != y[c] {
			product *= math.Exp(-1 / ls[c%len(ls)])
		}
	}
	return product
}

func laplace(x, y, ls []float64) float64 {
	product := 1.0
	for c := range x {
		product *= math.Exp(-math.Abs(x[c]-y[c]) / ls[c%len(ls)])
	}
	return product
}

func cases() []kernelCase {
	g3 := gaussianRows(3)
	iso := []float64{0.8}
	gauss := func(x, y []float64) float64 { return math.Exp(-r2(x, y, ard) / 2) }
	return []kernelCase{
		{"gaussian", must(kernel.NewGaussian(iso...)), g3, func(x, y []float64) float64 { return math.Exp(-r2(x, y, iso) / 2) }},
		{"gaussian ARD", must(kernel.NewGaussian(ard...)), g3, gauss},
		{"laplace", must(kernel.NewLaplace(ard...)), g3, func(x, y []float64) float64 { return laplace(x, y, ard) }},
		{"laplace isotropic", must(kernel.NewLaplace(2)), g3, func(x, y []float64) float64 { return laplace(x, y, []float64{2}) }},
		{"matern12", must(kernel.NewMatern12(ard...)), g3, func(x, y []float64) float64 { return math.Exp(-math.Sqrt(r2(x, y, ard))) }},
		{"matern32", must(kernel.NewMatern32(ard...)), g3, func(x, y []float64) float64 {
			r := math.Sqrt(r2(x, y, ard))
			return (1 + math.Sqrt(3)*r) * math.Exp(-math.Sqrt(3)*r)
		}},
		{"matern52", must(kernel.NewMatern52(ard...)), g3, func(x, y []float64) float64 {
			r := math.Sqrt(r2(x, y, ard))
			return (1 + math.Sqrt(5)*r + 5*r*r/3) * math.Exp(-math.Sqrt(5)*r)
		}},
		{"rational quadratic", must(kernel.NewRationalQuadratic(1.7, ard...)), g3, func(x, y []float64) float64 {
			return math.Pow(1+r2(x, y, ard)/(2*1.7), -1.7)
		}},
		{"linear", must(kernel.NewLinear(ard...)), g3, func(x, y []float64) float64 { return inner(x, y, ard) }},
		{"linear isotropic", must(kernel.NewLinear(0.9)), g3, func(x, y []float64) float64 { return inner(x, y, []float64{0.9}) }},
		{"polynomial", must(kernel.NewPolynomial(3, 0.6, ard...)), g3, func(x, y []float64) float64 { return math.Pow(inner(x, y, ard)+0.6, 3) }},
		{"polynomial homogeneous", must(kernel.NewPolynomial(2, 0, 1.1)), g3, func(x, y []float64) float64 { return math.Pow(inner(x, y, []float64{1.1}), 2) }},
		{"arc-cosine", must(kernel.NewArcCosine(ard...)), g3, func(x, y []float64) float64 { return arcCosine(x, y, ard) }},
		{"hamming", must(kernel.NewHamming(ard...)), categoryRows(3, 3), func(x, y []float64) float64 { return hamming(x, y, ard) }},
		{"hamming isotropic", must(kernel.NewHamming(1.5)), categoryRows(3, 3), func(x, y []float64) float64 { return hamming(x, y, []float64{1.5}) }},
		{"scaled", must(kernel.NewScaled(2.5, must(kernel.NewGaussian(ard...)))), g3, func(x, y []float64) float64 { return 2.5 * gauss(x, y) }},
		{"float32", must(kernel.NewMatern52(ard...)), float32Rows(g3), nil},
		{"sparse", must(kernel.NewGaussian(ard...)), sparseRows(g3), nil},
		{"sparse arc-cosine", must(kernel.NewArcCosine(ard...)), sparseRows(g3), nil},
		{"sparse hamming", must(kernel.NewHamming(ard...)), sparseRows(categoryRows(3, 3)), nil},
		{"no coordinates", must(kernel.NewGaussian(1)), gaussianRows(0), func(x, y []float64) float64 { return 1 }},
	}
}

func TestConformance(t *testing.T) {
	for _, c := range cases() {
		kerneltest.Run(t, c.name, c.k, c.gen)
	}
	kerneltest.Run(t, "strings", spectrum, wordRows, resolveSpectrum)
	kerneltest.Run(t, "function of points", &kernel.Pairwise[[]float64]{
		Name: "own", Sup: 1,
		Func: func(x, y []float64) float64 { return math.Exp(-r2(x, y, []float64{1})) },
	}, gaussianRows(2))
}

func TestFormulas(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 7))
	for _, c := range cases() {
		if c.want == nil {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			x := c.gen(rng, 30).(*kernel.Points[float64])
			for i := range 30 {
				for j := range 30 {
					want := c.want(x.Row(i), x.Row(j))
					if got := c.k.Eval(x, i, x, j); math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
						t.Fatalf("k(%v, %v) = %v, want %v", x.Row(i), x.Row(j), got, want)
					}
				}
			}
		})
	}
}

// A kernel reads dense, single-precision and sparse rows alike, in any pairing.
func TestStorageDoesNotMatter(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, c := range cases() {
		dense, ok := c.gen(rng, 9).(*kernel.Points[float64])
		if !ok {
			continue
		}
		dense = kernel.ConvertPoints[float64](kernel.ConvertPoints[float32](dense)) // exact in both
		for i := 0; i < len(dense.Data()); i += 2 {
			dense.Data()[i] = 0
		}
		single := kernel.ConvertPoints[float32](dense)
		forms := []kernel.Rows{dense, single, kernel.Sparse(dense), kernel.Sparse(single)}
		want, err := kernel.Matrix(c.k, dense, dense)
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range forms {
			for _, y := range forms {
				got, err := kernel.Matrix(c.k, x, y)
				if err != nil {
					t.Fatal(err)
				}
				for p := range want {
					if math.Abs(got[p]-want[p]) > 1e-13*max(1, math.Abs(want[p])) {
						t.Fatalf("%s on %T and %T: element %d is %v, want %v", c.name, x, y, p, got[p], want[p])
					}
				}
			}
		}
	}
}

// The bound of the distance kernels is attained on the diagonal.
func TestBoundIsTight(t *testing.T) {
	x := kernel.NewPoints[float64](1, 3, []float64{1, 2, 3})
	for _, c := range cases()[:8] {
		if c.k.Bound() != 1 || c.k.Diag(x, 0) != 1 {
			t.Errorf("%s: κ² = %v, k(x, x) = %v, want 1", c.name, c.k.Bound(), c.k.Diag(x, 0))
		}
	}
}

// For inputs that are far apart and for huge distances the kernel is 0, not NaN.
func TestFarApart(t *testing.T) {
	for _, d := range []float64{1e3, 1e160, math.MaxFloat64} {
		x := kernel.NewPoints[float64](2, 3, []float64{-d, 0, 0, d, 0, 0})
		for _, c := range cases()[:8] {
			if got := c.k.Eval(x, 0, x, 1); math.IsNaN(got) || got < 0 || got > 1e-3 {
				t.Errorf("%s at distance %g is %v, want 0", c.name, d, got)
			}
		}
	}
}
