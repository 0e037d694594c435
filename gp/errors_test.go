package gp_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/gp"
	"github.com/bkbtuner/bkb/gp/kernel"
)

// snapshot returns the visible state of a posterior.
func snapshot(t *testing.T, p predictor, q kernel.Rows) map[string]any {
	t.Helper()
	mean, variance := predict(t, p, q)
	out := map[string]any{"mean": mean, "variance": variance}
	switch p := p.(type) {
	case *gp.Exact:
		out["evidence"], out["loo"], out["logdet"] = p.Evidence(), p.LeaveOneOut(), p.LogDet()
		out["jitter"] = p.Jitter()
	case *gp.Sparse:
		out["len"], out["logdet"] = p.Len(), p.LogDet()
		out["counts"], out["pending"], out["gain"] = p.Counts(), p.PendingCounts(), p.InformationGain()
		out["leverage"], out["rank"] = p.Leverage(), p.Rank()
		out["arms"], out["armVariances"] = append([]float64(nil), p.ArmMeans()...), append([]float64(nil), p.ArmVariances()...)
	}
	return out
}

func points(d int, v ...float64) *kernel.Points[float64] {
	return kernel.NewPoints(len(v)/d, d, v)
}

// badData is data that every method must refuse, with a word of the message.
func badData() map[string]struct {
	data gp.Data
	word string
} {
	nan, inf := math.NaN(), math.Inf(1)
	good := points(2, 0.1, 0.2, 0.3, 0.4)
	type c = struct {
		data gp.Data
		word string
	}
	return map[string]c{
		"NaN target":     {gp.Data{X: good, Y: []float64{1, nan}}, "y is NaN at index 1"},
		"Inf target":     {gp.Data{X: good, Y: []float64{-inf, 1}}, "y is -Inf at index 0"},
		"huge target":    {gp.Data{X: good, Y: []float64{1, 1e200}}, "at index 1"},
		"NaN input":      {gp.Data{X: points(2, 0, 0, 0, nan), Y: []float64{1, 2}}, "x is NaN at row 1, column 1"},
		"Inf input":      {gp.Data{X: points(2, inf, 0, 0, 0), Y: []float64{1, 2}}, "x is +Inf at row 0, column 0"},
		"few targets":    {gp.Data{X: good, Y: []float64{1}}, "y has length 1, want 2"},
		"many targets":   {gp.Data{X: good, Y: []float64{1, 2, 3}}, "y has length 3, want 2"},
		"no inputs":      {gp.Data{Y: []float64{1}}, "y has length 1, want 0"},
		"dimension":      {gp.Data{X: points(3, 1, 2, 3), Y: []float64{1}}, "dimension 3, want 2"},
		"short noise":    {gp.Data{X: good, Y: []float64{1, 2}, Noise: []float64{1}}, "noise has length 1, want 2"},
		"negative noise": {gp.Data{X: good, Y: []float64{1, 2}, Noise: []float64{1, -1}}, "noise is -1 at index 1"},
		"NaN noise":      {gp.Data{X: good, Y: []float64{1, 2}, Noise: []float64{nan, 0}}, "noise is NaN at index 0"},
		"type":           {gp.Data{X: kernel.List[string]{"a", "b"}, Y: []float64{1, 2}}, "cannot read"},
	}
}

func TestRefusedObservationsChangeNothing(t *testing.T) {
	rng := seeded(t)
	k, x, y, q := kernels(2)["gaussian"], uniform(rng, 20, 2), normals(rng, 20), uniform(rng, 5, 2)
	data := gp.Data{X: x, Y: y}
	g := must(gp.NewExact(k, data, gp.Options{NoiseVariance: 0.1, Mean: 0.3}))
	s := must(gp.NewSparse(k, x.Slice(0, 5), data, gp.SparseOptions{NoiseVariance: 0.1}))
	if err := errors.Join(s.SetArms(q, false), s.ObserveVariance(x.Slice(0, 3))); err != nil {
		t.Fatal(err)
	}
	wantG, wantS := snapshot(t, g, q), snapshot(t, s, q)
	refused := func(name string, err error, word string) {
		t.Helper()
		if err == nil {
			t.Errorf("%s: not refused", name)
		} else if !strings.Contains(err.Error(), word) {
			t.Errorf("%s: error %q does not say %q", name, err, word)
		}
		if d := cmp.Diff(wantG, snapshot(t, g, q)); d != "" {
			t.Errorf("%s: exact posterior changed:\n%s", name, d)
		}
		if d := cmp.Diff(wantS, snapshot(t, s, q)); d != "" {
			t.Errorf("%s: sparse posterior changed:\n%s", name, d)
		}
	}
	for name, c := range badData() {
		refused(name, s.Observe(c.data), c.word)
		_, err := gp.NewExact(k, c.data, gp.Options{NoiseVariance: 0.1})
		refused(name, err, c.word)
		_, err = gp.Fit(context.Background(), k, c.data, gp.FitOptions{})
		if err == nil || name == "dimension" != strings.Contains(err.Error(), "dimension") {
			t.Errorf("%s: fit: %v", name, err)
		}
	}
	bad := points(2, 0, math.NaN())
	refused("pending NaN", s.ObserveVariance(bad), "x is NaN at row 0, column 1")
	refused("cancel", s.Cancel(x.Slice(4, 5)), "not pending")
	refused("cancel twice", s.Cancel(x.Select([]int{0, 0})), "row 1 of x: gp: not pending")
	refused("cancel unknown", s.Cancel(q), "not pending")
	refused("cancel arm", s.CancelArm(0), "not pending")
	refused("arm", s.ObserveArm(5, 1), "index 5 out of range [0,5)")
	refused("arm", s.PullArm(-1), "out of range")
	refused("arm NaN", s.ObserveArm(1, math.NaN()), "y is NaN")
	refused("dictionary", s.Resparsify(bad), "dictionary is NaN at row 0, column 1")
	refused("dictionary", s.Resparsify(nil), "dictionary: no rows")
	refused("dictionary", s.Resparsify(points(3, 1, 2, 3)), "dimension 3, want 2")
	refused("arms", s.SetArms(bad, false), "arms is NaN")
}

func TestRefusedSettings(t *testing.T) {
	k, x := kernels(2)["gaussian"], points(2, 0, 0, 1, 1)
	for _, v := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		var ve *gp.ValueError
		if _, err := gp.NewExact(k, gp.Data{}, gp.Options{NoiseVariance: v}); !errors.As(err, &ve) {
			t.Errorf("exact, noise variance %v: %v", v, err)
		}
		if _, err := gp.NewSparse(k, x, gp.Data{}, gp.SparseOptions{NoiseVariance: v}); !errors.As(err, &ve) {
			t.Errorf("sparse, noise variance %v: %v", v, err)
		}
	}
	one := gp.Options{NoiseVariance: 1}
	if _, err := gp.NewExact(nil, gp.Data{}, one); err == nil {
		t.Error("no kernel: accepted")
	}
	var ve *gp.ValueError
	one.Mean = math.Inf(1)
	if _, err := gp.NewExact(k, gp.Data{X: x, Y: []float64{1, 2}}, one); !errors.As(err, &ve) {
		t.Errorf("infinite mean: %v", err)
	}
	for name, o := range map[string]gp.SparseOptions{
		"mean":      {NoiseVariance: 1, Mean: math.NaN()},
		"tolerance": {NoiseVariance: 1, RankTolerance: 2},
		"method":    {NoiseVariance: 1, Approximation: 7},
	} {
		if _, err := gp.NewSparse(k, x, gp.Data{}, o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// indefinite is symmetric but not a kernel.
var indefinite = &kernel.Pairwise[[]float64]{Name: "indefinite", Func: func(a, b []float64) float64 {
	if a[0] == b[0] {
		return 1
	}
	return -0.9
}}

func TestNotPSDKernelIsNamed(t *testing.T) {
	x, y := points(1, 0, 1, 2), []float64{1, 2, 3}
	var e *gp.NotPSDError
	_, err := gp.NewExact(indefinite, gp.Data{X: x, Y: y}, gp.Options{NoiseVariance: 0.1})
	if !errors.As(err, &e) || e.Row != 2 || e.Pivot >= 0 || e.Jitter <= 0 {
		t.Errorf("exact: %v", err)
	}
	if _, err = gp.NewSparse(indefinite, x, gp.Data{}, gp.SparseOptions{NoiseVariance: 0.1}); !errors.As(err, &e) || e.Row != 2 {
		t.Errorf("sparse: %v", err)
	}
	// Two points are accepted, and the third shows it at prediction.
	two := gp.Data{X: x.Slice(0, 2), Y: y[:2]}
	g := must(gp.NewExact(indefinite, two, gp.Options{NoiseVariance: 0.1}))
	if _, _, err := g.Predict(x); !errors.As(err, &e) || e.Row != 2 {
		t.Errorf("exact prediction: %v", err)
	}
	s := must(gp.NewSparse(indefinite, x.Slice(0, 2), gp.Data{}, gp.SparseOptions{NoiseVariance: 0.1}))
	if err := s.Observe(gp.Data{X: x, Y: y}); !errors.As(err, &e) || s.Len() != 0 {
		t.Errorf("sparse observation: %v", err)
	}
	if _, err := gp.Fit(context.Background(), indefinite, gp.Data{X: x, Y: y}, gp.FitOptions{}); !errors.Is(err, gp.ErrFit) || !errors.As(err, &e) {
		t.Errorf("fit: %v", err)
	}
	nan := &kernel.Pairwise[[]float64]{Name: "nan", Func: func(a, b []float64) float64 { return math.NaN() }}
	var ne *kernel.NonFiniteError
	if _, err := gp.NewExact(nan, two, gp.Options{NoiseVariance: 1}); !errors.As(err, &ne) {
		t.Errorf("kernel of NaN: %v", err)
	}
	if _, err := gp.NewSparse(nan, x, gp.Data{}, gp.SparseOptions{NoiseVariance: 1}); !errors.As(err, &ne) {
		t.Errorf("kernel of NaN: %v", err)
	}
}

func TestJitterIsReported(t *testing.T) {
	rng := seeded(t)
	k := must(kernel.NewGaussian(1))
	x := repeated(rng, uniform(rng, 5, 2), 30)
	g := must(gp.NewExact(k, gp.Data{X: x, Y: normals(rng, 30)}, gp.Options{NoiseVariance: 1e-18}))
	j := g.Jitter()
	if j < 0.99e-12 {
		t.Errorf("jitter %g for repeated points without noise", j)
	}
	if _, v := predict(t, g, x); !(v[0] > 0) {
		t.Errorf("variance %g", v[0])
	}
	if j := must(gp.NewExact(k, gp.Data{X: x, Y: normals(rng, 30)}, gp.Options{NoiseVariance: 0.1})).Jitter(); j != 0 {
		t.Errorf("jitter %g where none was needed", j)
	}
	// The reported amount j is the one that was added, with LLᵀ − A = j·I for a singular A.
	c, j, err := gp.NewCholesky("ones", []float64{1, 1, 1, 1, 1, 1, 1, 1, 1}, 3)
	if err != nil || j == 0 {
		t.Fatal(j, err)
	}
	added := c[2][0]*c[2][0] + c[2][1]*c[2][1] + c[2][2]*c[2][2] - 1
	near1(t, "added", added/j, 1, 1e-2)
	a := []float64{1, 0, 2, 1}
	l, j, err := gp.NewCholesky("A", a, 2)
	var e *gp.NotPSDError
	if l != nil || !errors.As(err, &e) || e.Row != 1 || j == 0 {
		t.Errorf("indefinite matrix: %v %g %v", l, j, err)
	}
	near(t, "matrix", a, []float64{1, 0, 2, 1}, 0)
}

func TestDegenerateInputs(t *testing.T) {
	rng := seeded(t)
	k := kernels(2)["matern52"]
	far := points(2, 1e9, -1e9)
	for name, data := range map[string]gp.Data{
		"one":      {X: points(2, 0.5, 0.5), Y: []float64{2}},
		"repeated": {X: points(2, 1, 1, 1, 1, 1, 1), Y: []float64{2, 2, 2}},
		"constant": {X: uniform(rng, 9, 2), Y: make([]float64, 9)},
	} {
		for _, noise := range []float64{1, 1e-12} {
			g := must(gp.NewExact(k, data, gp.Options{NoiseVariance: noise, Mean: 7}))
			s := must(gp.NewSparse(k, data.X, data, gp.SparseOptions{NoiseVariance: noise}))
			for _, p := range []predictor{g, s} {
				mean, v := predict(t, p, data.X)
				for i := range mean {
					if math.IsNaN(mean[i]) || v[i] < 2.5e-12 {
						t.Errorf("%s, noise %g: mean %g, variance %g", name, noise, mean[i], v[i])
					}
				}
				if _, v := predict(t, p, far); math.Abs(v[0]-2.5) > 1e-12 {
					t.Errorf("%s: variance %g far away", name, v[0])
				}
			}
		}
	}
	empty := must(gp.NewSparse(k, kernel.NewPoints[float64](0, 2, nil), gp.Data{}, gp.SparseOptions{NoiseVariance: 1}))
	if err := empty.SetArms(far, false); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(empty.ObserveArm(0, 3), empty.PullArm(0), empty.CancelArm(0)); err != nil {
		t.Fatal(err)
	}
	m, v := predict(t, empty, far)
	near(t, "mean", m, []float64{0}, 0)
	near(t, "variance", v, []float64{2.5}, 0)
	near(t, "arm variance", empty.ArmVariances(), []float64{2.5}, 0)
}
