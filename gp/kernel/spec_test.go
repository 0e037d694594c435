package kernel_test

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
)

func TestBadParameters(t *testing.T) {
	for name, build := range map[string]func() (kernel.Kernel, error){
		"zero length scale":     func() (kernel.Kernel, error) { return kernel.NewGaussian(0) },
		"negative length scale": func() (kernel.Kernel, error) { return kernel.NewLaplace(1, -1) },
		"NaN length scale":      func() (kernel.Kernel, error) { return kernel.NewMatern12(math.NaN()) },
		"infinite length scale": func() (kernel.Kernel, error) { return kernel.NewMatern32(math.Inf(1)) },
		"tiny length scale":     func() (kernel.Kernel, error) { return kernel.NewMatern52(1e-200) },
		"alpha":                 func() (kernel.Kernel, error) { return kernel.NewRationalQuadratic(0, 1) },
		"degree":                func() (kernel.Kernel, error) { return kernel.NewPolynomial(0, 1, 1) },
		"offset":                func() (kernel.Kernel, error) { return kernel.NewPolynomial(2, -1, 1) },
		"factor":                func() (kernel.Kernel, error) { return kernel.NewScaled(0, spectrum) },
	} {
		_, err := build()
		var p *kernel.ParameterError
		if !errors.As(err, &p) {
			t.Errorf("%s: %v, want a ParameterError", name, err)
		}
	}
	var p *kernel.ParameterError
	if _, err := kernel.NewLaplace(1, -1); !errors.As(err, &p) || p.Parameter != "length_scale[1]" || p.Value != -1.0 {
		t.Errorf("the error does not say which length scale: %v", err)
	}
	var shape *kernel.ShapeError
	if _, err := kernel.NewGaussian(); !errors.As(err, &shape) {
		t.Errorf("no length scale: %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	deep := `{"name":"gaussian","length_scales":[1]}`
	for range 100 {
		deep = `{"name":"scaled","params":{"factor":1},"parts":[` + deep + `]}`
	}
	for name, text := range map[string]string{
		"not JSON":          `{`,
		"no name":           `{}`,
		"unknown name":      `{"name":"spectrum"}`,
		"unknown part":      `{"name":"scaled","params":{"factor":1},"parts":[{"name":"spectrum"}]}`,
		"no parts":          `{"name":"scaled","params":{"factor":1}}`,
		"missing alpha":     `{"name":"rational_quadratic","length_scales":[1]}`,
		"fractional degree": `{"name":"polynomial","length_scales":[1],"params":{"degree":1.5,"offset":1}}`,
		"huge degree":       `{"name":"polynomial","length_scales":[1],"params":{"degree":1e300,"offset":1}}`,
		"bad length scale":  `{"name":"gaussian","length_scales":[-1]}`,
		"no length scale":   `{"name":"gaussian"}`,
		"two parts":         `{"name":"scaled","params":{"factor":1},"parts":[{"name":"linear","length_scales":[2]},{"name":"linear","length_scales":[2]}]}`,
		"no factor":         `{"name":"scaled","parts":[{"name":"linear","length_scales":[2]}]}`,
		"nested too deeply": deep,
	} {
		if k, err := kernel.Unmarshal([]byte(text), nil); err == nil || k != nil {
			t.Errorf("%s: %v, %v", name, k, err)
		}
	}
}

func TestResolverInsideScaled(t *testing.T) {
	k := must(kernel.NewScaled(3, must(kernel.NewScaled(2, spectrum))))
	data, err := kernel.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	again, err := kernel.Unmarshal(data, resolveSpectrum)
	if err != nil {
		t.Fatal(err)
	}
	x := kernel.List[string]{"abcab", "bcab"}
	if got := again.Eval(x, 0, x, 1); got != k.Eval(x, 0, x, 1) || got == 0 {
		t.Errorf("k = %v, want %v", got, k.Eval(x, 0, x, 1))
	}
	if params := k.Parameters(); len(params) != 2 || params[0] != (kernel.Parameter{Name: "factor", Value: 3}) {
		t.Errorf("parameters %v", params)
	}
}

// Users and stored studies see the names of parameters.
func TestParameterNames(t *testing.T) {
	var names []string
	k, _ := kernel.AsTunable(must(kernel.NewScaled(1.5, must(kernel.NewRationalQuadratic(2, 1, 3)))))
	for _, p := range k.Parameters() {
		names = append(names, p.Name)
	}
	want := "factor length_scale[0] length_scale[1] alpha"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("parameters %q, want %q", got, want)
	}
	for _, theta := range [][]float64{nil, make([]float64, 5), {0, 0, 0, math.NaN()}, {0, 0, 0, 1e9}} {
		if _, err := k.WithLogParameters(theta); err == nil {
			t.Errorf("log parameters %v were accepted", theta)
		}
	}
}

func TestCheckPSD(t *testing.T) {
	x := gaussianRows(2)(rand.New(rand.NewPCG(1, 0)), 20)
	dist := func(x, y []float64) float64 { return math.Sqrt(r2(x, y, []float64{1})) }
	var psd *kernel.NotPSDError
	if err := kernel.CheckPSD(&kernel.Pairwise[[]float64]{Name: "distance", Func: dist}, x); !errors.As(err, &psd) || psd.Pivot >= 0 {
		t.Errorf("a distance is no kernel: %v", err)
	}
	for _, scale := range []float64{1, 1e-12, 1e-40} { // only relative sizes matter
		small := func(x, y []float64) float64 { return -scale * (x[0] * y[0]) }
		if err := kernel.CheckPSD(&kernel.Pairwise[[]float64]{Name: "negative", Func: small}, x); !errors.As(err, &psd) {
			t.Errorf("negative definite at %g: %v", scale, err)
		}
		product := func(x, y []float64) float64 { return scale * (x[0] * y[0]) }
		if err := kernel.CheckPSD(&kernel.Pairwise[[]float64]{Name: "product", Func: product}, x); err != nil {
			t.Errorf("positive semi-definite at %g: %v", scale, err)
		}
	}
	skew := func(x, y []float64) float64 { return x[0] * (1 + y[1]) }
	var asym *kernel.AsymmetryError
	if err := kernel.CheckPSD(&kernel.Pairwise[[]float64]{Name: "skew", Func: skew}, x); !errors.As(err, &asym) || asym.IJ == asym.JI {
		t.Errorf("asymmetric: %v", err)
	}
	nan := func(x, y []float64) float64 { return math.NaN() }
	var value *kernel.NonFiniteError
	if err := kernel.CheckPSD(&kernel.Pairwise[[]float64]{Name: "nan", Func: nan}, x); !errors.As(err, &value) {
		t.Errorf("NaN: %v", err)
	}
	if err := kernel.CheckPSD(spectrum, x); err == nil {
		t.Error("rows of the wrong type were accepted")
	}
}

func TestMatrixRefuses(t *testing.T) {
	x, y := kernel.NewPoints[float64](2, 3, nil), kernel.NewPoints[float64](2, 2, nil)
	k := must(kernel.NewGaussian(1))
	var dim *kernel.DimensionError
	if _, err := kernel.Matrix(k, x, y); !errors.As(err, &dim) {
		t.Errorf("dimensions differ: %v", err)
	}
	x.Row(1)[2] = math.NaN()
	_, err := kernel.Matrix(k, x, x)
	requireNonFinite(t, err, "x", 1, 2)
	_, err = kernel.Gramian(k, x)
	requireNonFinite(t, err, "x", 1, 2)
	_, err = kernel.Diagonal(k, x)
	requireNonFinite(t, err, "x", 1, 2)
	x.Row(1)[2] = 1e300
	_, err = kernel.Matrix(must(kernel.NewPolynomial(9, 1, 1)), x, x)
	requireNonFinite(t, err, "K(X, Y)", 1, 1)
}

// If Unmarshal accepts a text, its kernel is written back and accepted again.
func FuzzUnmarshal(f *testing.F) {
	for _, c := range cases() {
		data, err := kernel.Marshal(c.k)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		k, err := kernel.Unmarshal(data, nil)
		if err != nil {
			return
		}
		first, err := kernel.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		again, err := kernel.Unmarshal(first, nil)
		if err != nil {
			t.Fatal(err)
		}
		second, err := json.Marshal(again.Spec())
		if err != nil || string(first) != string(second) {
			t.Fatalf("%s became %s (%v)", first, second, err)
		}
	})
}
