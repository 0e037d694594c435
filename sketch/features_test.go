package sketch

import (
	"encoding/json"
	"errors"
	"math"
	"math/bits"
	"reflect"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/internal/racetest"
)

const featureDim = 6

// everyMap has each family with each kind of kernel that it supports.
var everyMap = []struct {
	family Family
	kernel kernel.Kernel
}{
	{Fourier, kerneltest.Gaussian(2)},
	{Fourier, kerneltest.Gaussian(1, 2, 3, 4, 5, 6)},
	{Fourier, must(kernel.NewMatern12(3))},
	{Fourier, must(kernel.NewMatern32(3))},
	{Fourier, must(kernel.NewMatern52(3))},
	{Fourier, must(kernel.NewRationalQuadratic(0.7, 2))},
	{Fourier, must(kernel.NewRationalQuadratic(3, 2))},
	{Fourier, must(kernel.NewLaplace(8))},
	{Fourier, must(kernel.NewScaled(2, must(kernel.NewScaled(1.5, kerneltest.Gaussian(2)))))},
	{FourierCosine, kerneltest.Gaussian(2)},
	{FourierCosine, must(kernel.NewLaplace(8))},
	{FourierCosine, must(kernel.NewMatern52(3))},
	{Orthogonal, kerneltest.Gaussian(2)},
	{Orthogonal, kerneltest.Gaussian(1, 2, 3, 4, 5, 6)},
	{Orthogonal, must(kernel.NewMatern32(3))},
	{Orthogonal, must(kernel.NewRationalQuadratic(2, 2))},
	{Fastfood, kerneltest.Gaussian(2)},
	{Fastfood, kerneltest.Gaussian(1, 2, 3, 4, 5, 6)},
	{Fastfood, must(kernel.NewScaled(4, kerneltest.Gaussian(3)))},
	{ReLU, must(kernel.NewArcCosine(1))},
	{ReLU, must(kernel.NewScaled(0.5, must(kernel.NewArcCosine(1, 2, 3, 4, 5, 6))))},
	{GaussianSketch, must(kernel.NewLinear(1))},
	{GaussianSketch, must(kernel.NewLinear(1, 2, 3, 4, 5, 6))},
}

func newMap(t testing.TB, family Family, k kernel.Kernel, d, m int, seed uint64) FeatureMap {
	t.Helper()
	f, err := NewFeatures(FeatureSpec{Family: family, Kernel: k.Spec(), Dim: d, Features: m, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func apply(t testing.TB, f FeatureMap, x kernel.Rows) []float64 {
	t.Helper()
	out := make([]float64, x.Len()*f.Features())
	if err := f.Apply(out, x); err != nil {
		t.Fatal(err)
	}
	return out
}

// E φ(x)ᵀφ(y) = k(x, y) for the kernel that the map states. The mean over independent
// maps is within 5 of its own standard errors, for each of 15 pairs, and the standard
// error is that of M features.
func TestFeaturesConvergeToTheirKernel(t *testing.T) {
	racetest.Alone(t)
	const m, repeats = 256, 100
	x := kerneltest.Points(kerneltest.Seeded(t, 80), 5, featureDim)
	for which, c := range everyMap {
		scale := slices.Max(must(kernel.Diagonal(c.kernel, x)))
		var mean, square [15]float64
		for rep := range uint64(repeats) {
			f := newMap(t, c.family, c.kernel, featureDim, m, 1000+rep)
			phi := apply(t, f, x)
			for i, p := 0, 0; i < 5; i++ {
				for j := 0; j <= i; j, p = j+1, p+1 {
					v := dot(phi[i*m:][:m], phi[j*m:][:m])
					mean[p], square[p] = mean[p]+v/repeats, square[p]+v*v/repeats
				}
			}
		}
		for i, p := 0, 0; i < 5; i++ {
			for j := 0; j <= i; j, p = j+1, p+1 {
				want := c.kernel.Eval(x, i, x, j)
				deviation := math.Sqrt(max(square[p]-mean[p]*mean[p], 0))
				if math.Abs(mean[p]-want) > 5*deviation/math.Sqrt(repeats)+1e-12*scale {
					t.Errorf("map %d, %s → %s: pair %d, %d: %.4f ± %.4f, want %.4f", which, c.family, c.kernel.Spec().Name, i, j, mean[p], deviation/math.Sqrt(repeats), want)
				}
				if deviation > 4*scale/math.Sqrt(m) {
					t.Errorf("map %d, %s: deviation %.3f of one map", which, c.family, deviation)
				}
			}
		}
	}
}

// The error falls as M^−½. It is smallest for orthogonal frequencies, larger for
// independent ones, and largest for cosines with a phase.
func TestFeatureErrors(t *testing.T) {
	racetest.Alone(t)
	const repeats = 30
	k, x := susy(25, 81)
	rms := func(family Family, m int) float64 {
		total := 0.0
		for rep := range uint64(repeats) {
			phi := apply(t, newMap(t, family, k, x.Dim(), m, rep), x)
			for i := range x.Len() {
				for j := range i {
					e := dot(phi[i*m:][:m], phi[j*m:][:m]) - k.Eval(x, i, x, j)
					total += e * e
				}
			}
		}
		return math.Sqrt(total / repeats / float64(x.Len()*(x.Len()-1)/2))
	}
	at512 := map[Family]float64{}
	for _, family := range []Family{Fourier, FourierCosine, Orthogonal, Fastfood} {
		errors := []float64{rms(family, 128), rms(family, 512), rms(family, 2048)}
		slope := math.Log(errors[2]/errors[0]) / math.Log(16)
		t.Logf("%-14s M = 128, 512, 2048: %.4f, slope %.2f", family, errors, slope)
		if math.Abs(slope+0.5) > 0.1 {
			t.Errorf("%s: slope %.2f", family, slope)
		}
		at512[family] = errors[1]
	}
	if !(at512[Orthogonal] < 0.8*at512[Fourier] && at512[Fourier] < at512[FourierCosine]) {
		t.Errorf("errors at M = 512: %v", at512)
	}
}

// ‖φ(x)‖² = k(x, x) exactly for pairs of cosine and sine.
func TestPairsHaveTheRightNorm(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 82), 10, featureDim)
	for _, family := range []Family{Fourier, Orthogonal, Fastfood} {
		phi := apply(t, newMap(t, family, must(kernel.NewScaled(4, kerneltest.Gaussian(1))), featureDim, 100, 1), x)
		for i := range 10 {
			if v := dot(phi[i*100:][:100], phi[i*100:][:100]); math.Abs(v-4) > 1e-12 {
				t.Errorf("%s: ‖φ‖² = %v", family, v)
			}
		}
	}
}

// Larger maps begin with the smaller ones, up to 1/√M. Equal specs give equal maps,
// also after JSON, and another seed gives another map.
func TestFeaturesAreNestedAndRepeatable(t *testing.T) {
	x := kerneltest.Points(kerneltest.Seeded(t, 83), 4, featureDim)
	for _, c := range everyMap {
		small, large := newMap(t, c.family, c.kernel, featureDim, 22, 5), newMap(t, c.family, c.kernel, featureDim, 88, 5)
		a, b := apply(t, small, x), apply(t, large, x)
		for i := range 4 {
			for j := range 22 {
				if v, w := a[i*22+j], 2*b[i*88+j]; math.Abs(v-w) > 1e-14*math.Max(1, math.Abs(v)) {
					t.Fatalf("%s: feature %d of 22 is %v, of 88 %v", c.family, j, v, w)
				}
			}
		}
		var spec FeatureSpec
		if err := json.Unmarshal(must(json.Marshal(large.Spec())), &spec); err != nil || !reflect.DeepEqual(spec, large.Spec()) {
			t.Fatalf("%s: spec %+v: %v", c.family, spec, err)
		}
		if !slices.Equal(apply(t, must(NewFeatures(spec)), x), b) {
			t.Errorf("%s: the spec builds another map", c.family)
		}
		spec.Seed++
		if slices.Equal(apply(t, must(NewFeatures(spec)), x), b) {
			t.Errorf("%s: the seed does not matter", c.family)
		}
		if large.Dim() != featureDim || large.Features() != 88 || !reflect.DeepEqual(large.Kernel().Spec(), c.kernel.Spec()) {
			t.Errorf("%s: %d → %d, %v", c.family, large.Dim(), large.Features(), large.Kernel().Spec())
		}
	}
}

// Saved models name features by their seed, so these values must never change. They
// were recorded from this implementation.
func TestFeaturesGolden(t *testing.T) {
	x := kernel.NewPoints(1, 3, []float64{0.5, -1, 2})
	for _, c := range []struct {
		family Family
		kernel kernel.Kernel
		want   [2]float64 // φ_0 and Σ_j (j+1)φ_j of 8 features
	}{
		{Fourier, kerneltest.Gaussian(2), [2]float64{0.365416617013322, 9.49821901805535}},
		{Fourier, must(kernel.NewMatern52(2)), [2]float64{0.197664061688555, 7.98249818341109}},
		{Fourier, must(kernel.NewLaplace(2)), [2]float64{0.103952750040464, 4.87636444387964}},
		{Fourier, must(kernel.NewRationalQuadratic(0.5, 2)), [2]float64{0.405471659923271, 8.16937069403104}},
		{FourierCosine, kerneltest.Gaussian(2), [2]float64{-0.104729176808902, 9.82360891979555}},
		{Orthogonal, kerneltest.Gaussian(2), [2]float64{0.479036822995098, 1.85474250099773}},
		{Fastfood, kerneltest.Gaussian(2), [2]float64{-0.0263531211278646, 8.98253094477203}},
		{ReLU, must(kernel.NewArcCosine(2)), [2]float64{0, 2.26646440884767}},
		{GaussianSketch, must(kernel.NewLinear(2)), [2]float64{0.549846888921616, -1.30505711022787}},
	} {
		phi := apply(t, newMap(t, c.family, c.kernel, 3, 8, 1), x)
		all := dot(phi, []float64{1, 2, 3, 4, 5, 6, 7, 8})
		if math.Abs(phi[0]-c.want[0])+math.Abs(all-c.want[1]) > 1e-11 {
			t.Errorf("%s of %s: {%.15g, %.15g}, recorded %v", c.family, c.kernel.Spec().Name, phi[0], all, c.want)
		}
	}
}

// Rows of other types have the same features, dense ones and rows alone to the bit.
// Sparse rows use the cosines of package math instead of panels, so they check the
// panels.
func TestFeaturesOfAnyRows(t *testing.T) {
	racetest.Alone(t)
	rng := kerneltest.Seeded(t, 84)
	for _, n := range []int{1, 5, 130} {
		x32 := kernel.ConvertPoints[float32](kerneltest.Points(rng, n, featureDim))
		for i := range n {
			x32.Row(i)[i%featureDim] = 0
		}
		x := kernel.ConvertPoints[float64](x32)
		for _, c := range everyMap {
			for _, m := range []int{2, 40, 1014} {
				f := newMap(t, c.family, c.kernel, featureDim, m, 9)
				want := apply(t, f, x)
				if !slices.Equal(apply(t, f, x32), want) {
					t.Errorf("%s: float32 has other features", c.family)
				}
				if last := (n - 1) * m; !slices.Equal(apply(t, f, x.Slice(n-1, n)), want[last:]) {
					t.Errorf("%s: the last of %d rows alone has other features", c.family, n)
				}
				for _, rows := range []kernel.Rows{kernel.Sparse(x), kernel.Sparse(x32)} {
					for i, v := range apply(t, f, rows) {
						if !(math.Abs(v-want[i]) <= 1e-12) {
							t.Fatalf("%s: feature %d of row %d is %v of %T, %v of dense rows", c.family, i%m, i/m, v, rows, want[i])
						}
					}
				}
			}
		}
	}
}

// Rows of W are orthogonal within a block of d, and Q is uniform. The mean of each of
// its entries is 0, and of their squares 1/d.
func TestOrthogonalFrequencies(t *testing.T) {
	const d = 7
	f := newMap(t, Orthogonal, kerneltest.Gaussian(1), d, 2*(2*d+3), 3).(*dense)
	row := func(j int) []float64 {
		w := make([]float64, d)
		for c := range w {
			w[c] = f.wt[c*f.rows+j]
		}
		return w
	}
	for i := range f.rows {
		for j := range i {
			v := dot(row(i), row(j)) / math.Sqrt(dot(row(i), row(i))*dot(row(j), row(j)))
			if same := i/d == j/d; same != (math.Abs(v) < 1e-12) {
				t.Errorf("cosine of frequencies %d and %d is %g", i, j, v)
			}
		}
	}
	const repeats = 4000
	rng := kerneltest.Seeded(t, 85)
	var mean, square, trace float64
	for range repeats {
		q := haar(3, rng)
		mean += q.At(0, 0) / repeats
		square += q.At(1, 2) * q.At(1, 2) / repeats
		trace += q.At(0, 0) * q.At(1, 1) / repeats // 0 only if the signs are right
	}
	for what, v := range map[string]float64{"E q": mean, "E q² − 1/d": square - 1.0/3, "E q₁₁q₂₂": trace} {
		if math.Abs(v) > 5/math.Sqrt(3*repeats) {
			t.Errorf("%s = %g", what, v)
		}
	}
}

// Fastfood's block is (1/√D) S H G Π H B with every matrix written out, and H is
// the Hadamard matrix.
func TestFastfoodAgainstDenseHadamard(t *testing.T) {
	for _, size := range []int{1, 2, 8, 32} {
		rng := kerneltest.Seeded(t, 86)
		b := newFastfoodBlock(size, rng)
		h := func(v []float64) []float64 {
			out := make([]float64, size)
			for i := range out {
				for j, a := range v {
					out[i] += a * float64(1-2*(bits.OnesCount(uint(i&j))%2))
				}
			}
			return out
		}
		v := kerneltest.Points(rng, 1, size).Row(0)
		step := make([]float64, size)
		for i := range v {
			step[i] = b.sign[i] * v[i]
		}
		step = h(step)
		permuted := make([]float64, size)
		for i, p := range b.perm {
			permuted[i] = b.gauss[i] * step[p]
		}
		want := h(permuted)
		for i := range want {
			want[i] *= b.scale[i]
		}
		s, tmp := make([]float64, size), make([]float64, size)
		b.project(s, tmp, v)
		for i := range want {
			if math.Abs(s[i]-want[i]) > 1e-12*float64(size) {
				t.Fatalf("D = %d: element %d is %g, want %g", size, i, s[i], want[i])
			}
		}
		twice := slices.Clone(v)
		hadamard(twice)
		hadamard(twice)
		for i := range v {
			if math.Abs(twice[i]-float64(size)*v[i]) > 1e-13*float64(size) {
				t.Fatalf("D = %d: HHv = %g, v = %g", size, twice[i], v[i])
			}
		}
	}
}

// This is Example 1 of Carratino (2020), with an erratum. Without √2 and the sum's 1/√M
// the cosines converge to k/2 (times M).
func TestPaperExample1(t *testing.T) {
	k, x := kerneltest.Gaussian(2), kerneltest.Points(kerneltest.Seeded(t, 87), 2, 3)
	const m = 100_000
	phi := apply(t, newMap(t, FourierCosine, k, 3, m, 4), x)
	want := k.Eval(x, 0, x, 1)
	if got := dot(phi[:m], phi[m:]); math.Abs(got-want) > 5/math.Sqrt(m) {
		t.Errorf("%g, want k = %g", got, want)
	}
	for j := range phi {
		phi[j] /= math.Sqrt2 // as printed, with 1/√M added
	}
	if got := dot(phi[:m], phi[m:]); math.Abs(got-want/2) > 5/math.Sqrt(m) {
		t.Errorf("without √2: %g, want k/2 = %g", got, want/2)
	}
}

func TestFeatureFaults(t *testing.T) {
	k := kerneltest.Gaussian(1)
	var wrong *FeatureError
	var parameter *ParameterError
	for _, c := range []struct {
		family Family
		kernel kernel.Kernel
	}{
		{Fourier, must(kernel.NewLinear(1))},
		{Orthogonal, must(kernel.NewLaplace(1))},
		{Fastfood, must(kernel.NewMatern32(1))},
		{ReLU, k},
		{GaussianSketch, k},
		{"none", k},
		{Fourier, kerneltest.Gaussian(1, 2)},
	} {
		if _, err := NewFeatures(FeatureSpec{Family: c.family, Kernel: c.kernel.Spec(), Dim: 3, Features: 4}); !errors.As(err, &wrong) {
			t.Errorf("%s of %s: %v", c.family, c.kernel.Spec().Name, err)
		}
	}
	for _, shape := range [][2]int{{0, 4}, {3, 0}, {3, 5}, {-1, 4}, {1 << 40, 1 << 40}, {3, 1 << 62}} {
		if _, err := NewOrthogonal(k, shape[0], shape[1], 0); !errors.As(err, &parameter) {
			t.Errorf("%v: %v", shape, err)
		}
	}
	if _, err := NewFeatures(FeatureSpec{Family: Fourier, Kernel: kernel.Spec{Name: "?"}, Dim: 1, Features: 2}); err == nil {
		t.Error("no error for an unknown kernel")
	}
	f := must(NewFourier(k, 3, 4, 0))
	x := kerneltest.Points(kerneltest.Seeded(t, 88), 2, 3)
	if err := f.Apply(make([]float64, 7), x); !errors.As(err, new(*kernel.ShapeError)) {
		t.Error(err)
	}
	if err := f.Apply(make([]float64, 8), kerneltest.Points(kerneltest.Seeded(t, 88), 2, 2)); !errors.As(err, new(*kernel.DimensionError)) {
		t.Error(err)
	}
	if err := f.Apply(make([]float64, 4), kernel.List[string]{"a"}); !errors.As(err, new(*kernel.TypeError)) {
		t.Error(err)
	}
	x.Row(1)[2] = math.NaN()
	var nan *kernel.NonFiniteError
	if err := f.Apply(make([]float64, 8), x); !errors.As(err, &nan) || nan.Row != 1 || nan.Col != 2 {
		t.Error(err)
	}
}
