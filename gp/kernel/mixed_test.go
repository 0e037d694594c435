package kernel

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// randomMixed returns a kernel of two ordered and one nominal coordinate, with a
// fidelity if wanted.
func randomMixed(t *testing.T, rng *rand.Rand, fidelity bool) *Mixed {
	t.Helper()
	theta := []float64{0.5 + 2*rng.Float64(), 0.2 + rng.Float64(), 0.2 + rng.Float64(), 0.5 + rng.Float64()}
	k, err := NewMixed([]int{0, 2}, []int{1}, theta)
	if err == nil && fidelity {
		k, err = k.WithFidelity(0.5 + 5*rng.Float64())
	}
	if err != nil {
		t.Fatal(err)
	}
	return k.WithConstant(float64(rng.IntN(2)) * rng.Float64())
}

func mixedPoint(rng *rand.Rand, k *Mixed) []float64 {
	x := []float64{rng.Float64(), float64(rng.IntN(3)), rng.Float64()}
	if k.Dim() > 3 {
		x = append(x, 4*rng.Float64())
	}
	return x
}

// TestMixed compares the kernel with the product of its parts, its gradients with
// differences, and rows by [Radial] with pairs.
func TestMixed(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance*(1+math.Abs(want))) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
	for range 50 {
		for _, fidelity := range []bool{false, true} {
			k := randomMixed(t, rng, fidelity)
			d := k.Dim()
			x := NewPoints(2, d, append(mixedPoint(rng, k), mixedPoint(rng, k)...))
			near("k", k.Eval(x, 0, x, 1), product(t, k, x), 1e-13)
			near("κ²", k.Bound(), k.Diag(x, 0), 0)
			theta, grad := make([]float64, len(k.Parameters())), make([]float64, len(k.Parameters()))
			for i, p := range k.Parameters() {
				theta[i] = math.Log(p.Value)
			}
			k.AddLogGrad(grad, 1.5, x, 0, x, 1)
			for i := range theta {
				const h = 1e-6
				at := func(step float64) float64 {
					moved := slices.Clone(theta)
					moved[i] += step
					q, err := k.WithLogParameters(moved)
					if err != nil {
						t.Fatal(err)
					}
					return q.Eval(x, 0, x, 1)
				}
				near("∂k/∂log θ", grad[i], 1.5*(at(h)-at(-h))/(2*h), 1e-6)
			}
			radialRows(t, k, x, near)
		}
	}
	for _, bad := range [][]float64{{1}, {1, 2}, {1, 2, 3, 4, 5}, {1, -1, 1, 1}, {0, 1, 1, 1}} {
		if k, err := NewMixed([]int{0, 2}, []int{1}, bad); err == nil {
			t.Errorf("θ = %v: %v", bad, k)
		}
	}
	var spec *SpecError
	for _, c := range [][2][]int{{{0, 0}, {1}}, {{0, 3}, {1}}, {nil, nil}} {
		if _, err := NewMixed(c[0], c[1], []float64{1, 1, 1, 1}[:1+len(c[0])+len(c[1])]); !errors.As(err, &spec) {
			t.Errorf("coordinates %v: %v", c, err)
		}
	}
}

// product is k of the two rows of x, as the constant and the product of kernels of its parts.
func product(t *testing.T, k *Mixed, x *Points[float64]) float64 {
	t.Helper()
	value := k.factor
	for _, part := range []struct {
		k      func(lengthScales ...float64) (*Base, error)
		scales []float64
		coords []int
	}{{NewMatern52, k.lengths[:2], k.ordered}, {NewHamming, k.lengths[2:], k.nominal}, {NewMatern12, []float64{k.FidelityLength()}, []int{3}}} {
		if part.coords[0] >= x.Dim() {
			continue
		}
		inner, err := part.k(part.scales...)
		if err != nil {
			t.Fatal(err)
		}
		at := gather(nil, x, 0, 2, part.coords)
		value *= inner.Eval(at, 0, at, 1)
	}
	return k.constant + value
}

// radialRows compares FillRow and FillSlopes with pairs and gradients.
func radialRows(t *testing.T, k Kernel, x *Points[float64], near func(what string, got, want, tolerance float64)) {
	t.Helper()
	r, ok := AsRadial(k)
	if !ok {
		t.Fatalf("%v is not radial", k.Spec())
	}
	n, d := x.Len(), x.Dim()
	values, again, slopes := make([]float64, n), make([]float64, n), make([]float64, n)
	r.FillRow(values, x.Row(0), x.Data())
	r.FillSlopes(again, slopes, x.Row(0), x.Data())
	weights := r.SlopeWeights(d)
	for j := range n {
		near("FillRow", values[j], k.Eval(x, 0, x, j), 1e-13)
		near("FillSlopes", again[j], k.Eval(x, 0, x, j), 1e-13)
		for c, w := range weights {
			const h = 1e-6
			up, down := slices.Clone(x.Row(0)), slices.Clone(x.Row(0))
			up[c], down[c] = up[c]+h, down[c]-h
			if u := NewPoints(2, d, append(up, down...)); w > 0 {
				near("slope", slopes[j]*w*(x.Row(0)[c]-x.Row(j)[c]), (k.Eval(u, 0, x, j)-k.Eval(u, 1, x, j))/(2*h), 1e-6)
			}
		}
	}
}

// TestRadial does the same for the built-in kernels of the Euclidean distance. Others
// are not radial.
func TestRadial(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	x := NewPoints[float64](7, 3, nil)
	for i := range x.Data() {
		x.Data()[i] = rng.Float64()
	}
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tolerance*(1+math.Abs(want))) {
			t.Fatalf("%s: %v, want %v", what, got, want)
		}
	}
	one := func(k *Base, err error) Kernel {
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	for _, k := range []Kernel{
		one(NewGaussian(0.4)), one(NewGaussian(0.3, 0.5, 2)), one(NewMatern12(0.4)), one(NewMatern32(0.5)),
		one(NewMatern52(0.3, 1, 2)), one(NewRationalQuadratic(1.5, 0.7)),
	} {
		t.Run(k.Spec().Name, func(t *testing.T) {
			radialRows(t, k, x, near)
			scaled, err := NewScaled(2.5, k)
			if err != nil {
				t.Fatal(err)
			}
			radialRows(t, scaled, x, near)
		})
	}
	for _, k := range []Kernel{one(NewLaplace(0.4)), one(NewLinear(1))} {
		if _, ok := AsRadial(k); ok {
			t.Errorf("%v is radial", k.Spec())
		}
	}
}

// TestMixedFidelity compares a kernel with a fidelity with its formula, its blocks with
// the product of its parts, and its gradient with differences.
func TestMixedFidelity(t *testing.T) {
	const seed = 21
	close2 := func(a, b, tolerance float64) bool { return math.Abs(a-b) <= tolerance*(1+math.Abs(a)+math.Abs(b)) }
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	for range 50 {
		plain, length := randomMixed(t, rng, false), 0.2+20*rng.Float64()
		k, err := plain.WithFidelity(length)
		if err != nil {
			t.Fatal(err)
		}
		const n = 5
		x := NewPoints[float64](n, 4, nil)
		for i := range n {
			copy(x.Row(i), append(mixedPoint(rng, plain), []float64{0, 12 * rng.Float64()}[rng.IntN(2)]))
		}
		block := make([]float64, n*n)
		var scratch Scratch
		k.Prepare(x).Fill(block, n, x, 0, n, &scratch)
		for i := range n {
			for j := range n {
				u, v := x.Row(i), x.Row(j)
				p := NewPoints(2, 3, append(slices.Clone(u[:3]), v[:3]...))
				want := plain.constant + (plain.Eval(p, 0, p, 1)-plain.constant)*math.Exp(-math.Abs(u[3]-v[3])/length)
				if got := k.Eval(x, i, x, j); !close2(got, want, 1e-13) || !close2(block[i*n+j], want, 1e-12) {
					t.Fatalf("k = %v, in a block %v, want %v", got, block[i*n+j], want)
				}
			}
		}
		theta := make([]float64, len(k.Parameters()))
		for i, p := range k.Parameters() {
			theta[i] = math.Log(p.Value)
		}
		grad := make([]float64, len(theta))
		k.AddLogGrad(grad, 1, x, 0, x, 1)
		for i := range theta {
			const h = 1e-6
			at := func(step float64) float64 {
				moved := slices.Clone(theta)
				moved[i] += step
				q, err := k.WithLogParameters(moved)
				if err != nil {
					t.Fatal(err)
				}
				return q.Eval(x, 0, x, 1)
			}
			if diff := (at(h) - at(-h)) / (2 * h); !close2(grad[i], diff, 1e-6) {
				t.Fatalf("slope %d is %v, by differences %v", i, grad[i], diff)
			}
		}
	}
}
