package theory

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/learners"
)

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// slope returns the log-log slope of f between n = 2^20 and 2^40, where rounding to
// whole numbers is negligible.
func slope(f func(n int) float64) float64 {
	return (math.Log(f(1<<40)) - math.Log(f(1<<20))) / (20 * math.Ln2)
}

func requireSlope(t *testing.T, what string, want float64, f func(n int) float64) {
	t.Helper()
	if got := slope(f); math.Abs(got-want) > 2e-3 {
		t.Errorf("%s grows as n^%.4f, want n^%.4f", what, got, want)
	}
}

var regularities = []Regularity{WorstCase(), {0.5, 0}, {0.5, 0.4}, {0.75, 0.5}, {1, 0}, {1, 1}, {1, 0.25}}

// These are the exponents printed in Corollaries 3, 4 and 6 and in (3.14).
func TestExponents(t *testing.T) {
	for _, g := range regularities {
		r, a := g.R, g.Alpha
		e := 1 / (2*r + a)
		requireSlope(t, "λ", -e, func(n int) float64 { return must[float64](t)(Lambda(n, g)) })
		for _, c := range []struct {
			s                       Schedule
			b, step, steps, passing float64
		}{
			{SmallSteps, 0, -1, (2*r + a + 1) * e, e},
			{SinglePoints, 0, -2 * r * e, (2*r + 1) * e, (1 - a) * e},
			{MiniBatches, 2 * r * e, 0, e, (1 - a) * e},
			{FullBatch, 1, 0, e, e},
		} {
			at := func(n int) SGD { return must[SGD](t)(c.s.Settings(n, g)) }
			requireSlope(t, string(c.s)+" b", c.b, func(n int) float64 { return float64(at(n).BatchSize) })
			requireSlope(t, string(c.s)+" γ", c.step, func(n int) float64 { return at(n).StepSize })
			if c.steps <= 1.5 { // beyond, T is larger than an int
				requireSlope(t, string(c.s)+" T", c.steps, func(n int) float64 { return float64(at(n).Iterations) })
				requireSlope(t, string(c.s)+" passes", c.passing, func(n int) float64 { return at(n).Passes })
			}
			if m := (1 + a*(2*r-1)) * e; m < 1 {
				requireSlope(t, string(c.s)+" M", m, func(n int) float64 { return float64(at(n).Features) })
			}
			s := at(10000)
			if got := s.StepSize * float64(s.Iterations) / math.Pow(10000, e); got < 1-1e-9 || got > 1.1 {
				t.Errorf("%s, %+v: γT is %g times n^(1/(2r+α))", c.s, g, got)
			}
		}
	}
}

// These are the four recipes of Corollary 5 at n = 10 000, and M = 4√n.
func TestCorollary5(t *testing.T) {
	for s, want := range map[Schedule]SGD{
		SmallSteps:   {1, 1e-4, 1000000, 100, 400},
		SinglePoints: {1, 1e-2, 10000, 1, 400},
		MiniBatches:  {100, 1, 100, 1, 400},
		FullBatch:    {10000, 1, 100, 100, 400},
	} {
		got := must[SGD](t)(s.Settings(10000, WorstCase()))
		if math.Abs(got.StepSize/want.StepSize-1) > 1e-12 {
			t.Errorf("%s: γ = %g, want %g", s, got.StepSize, want.StepSize)
		}
		got.StepSize = want.StepSize
		if got != want {
			t.Errorf("%s: %+v, want %+v", s, got, want)
		}
		if one := must[SGD](t)(s.Settings(1, WorstCase())); one != (SGD{1, 1, 1, 1, 1}) {
			t.Errorf("%s at n = 1: %+v", s, one)
		}
	}
}

// The constants of Theorem 7 were computed by hand.
func TestConstants(t *testing.T) {
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-6*want {
			t.Errorf("%s = %g, want %g", what, got, want)
		}
	}
	near("practical", float64(must[int](t)(PracticalCenters(1e5, 20, 0.01, 1))), math.Ceil(21*math.Log(8000)))
	// κ² scales only λ.
	near("κ²", float64(must[int](t)(PracticalCenters(1e5, 20, 0.04, 4))), math.Ceil(21*math.Log(8000)))
	if m := must[int](t)(PracticalCenters(50, 20, 0.01, 1)); m != 50 {
		t.Errorf("M = %d of 50 rows", m)
	}
}

// FALKON's M is about 10√n where theory knows nothing, which is a usual choice.
func TestFALKONIsAboutTenRootN(t *testing.T) {
	for _, n := range []int{1000, 10000, 100000, 1000000} {
		lambda := must[float64](t)(Lambda(n, WorstCase()))
		m := must[int](t)(PracticalCenters(n, 1/lambda, lambda, 1))
		if ratio := float64(m) / math.Sqrt(float64(n)); ratio < 7 || ratio > 13 {
			t.Errorf("n = %d: M = %d = %.1f√n", n, m, ratio)
		}
	}
}

func TestDoublyOnlineExponents(t *testing.T) {
	for _, z := range []float64{0.1, 0.25, 0.5, 1, 2} {
		for _, g := range []float64{0, 0.3, 0.5, 1} {
			p := DoublyOnline{Zeta: z, Gamma: g}
			fixed := func(n int) Steps { return must[Steps](t)(p.Fixed(n)) }
			requireSlope(t, "η", -(g+2*z)/(g+2*z+1), func(n int) float64 { return fixed(n).StepSize })
			balanced(t, p, fixed(100).Rate, (g+2*z)/(g+2*z+1), 0)
			requireSlope(t, "η in the space", -2*z/(2*z+1), func(n int) float64 { return must[Steps](t)(p.InSpace(n, 1)).StepSize })
			if g == 1 {
				continue
			}
			s := must[Steps](t)(p.Decaying())
			balanced(t, p, s.Rate, s.StepDecay, max(2*s.StepDecay-1, 0))
			if 2*z < 1-g && s.Rate != fixed(1).Rate {
				t.Errorf("%+v: decaying steps %g, constant ones %g", p, s.Rate, fixed(1).Rate)
			}
			if z > 1 {
				continue
			}
			eps := fixed(1).Rate / 2
			reg := func(n int) Steps { return must[Steps](t)(p.Regularised(n, eps)) }
			requireSlope(t, "λ", -1/(2*z+g+1)+eps/(2*z), func(n int) float64 { return reg(n).Lambda })
			if got := reg(5); math.Abs(got.Rate-(2*z/(2*z+g+1)-eps)) > 1e-15 {
				t.Errorf("%+v: rate %g", p, got.Rate)
			}
		}
	}
}

// balanced checks a rate against the two terms of (3.5) and (3.10) with η ∝ T^−θ, bias
// T^{2ζ(θ−1)} and noise T^{γ−θ(γ+1)+extra}. The worse one is the rate, and at a best θ
// they are equal.
func balanced(t *testing.T, p DoublyOnline, rate, theta, extra float64) {
	t.Helper()
	bias := 2 * p.Zeta * (1 - theta)
	noise := theta*(p.Gamma+1) - p.Gamma - extra
	if math.Abs(min(bias, noise)-rate) > 1e-12 {
		t.Errorf("%+v, θ = %g: rate %g, but bias %g and noise %g", p, theta, rate, bias, noise)
	}
}

// Corollaries 3.3 and 3.4 are special cases of 3.2.
func TestCorollary34(t *testing.T) {
	s := must[Steps](t)(DoublyOnline{Zeta: 0.5, Gamma: 1, KappaSq: 2}.Fixed(1000))
	if want := 1 / (24 * 4 * 100.0); math.Abs(s.StepSize/want-1) > 1e-12 || math.Abs(s.Rate-1.0/3) > 1e-15 {
		t.Errorf("%+v, want η = %g", s, want)
	}
}

// These are the four plots of figure 2 of Pillaud-Vivien, Rudi and Bach (2018), and the
// third regime.
func TestMultipass(t *testing.T) {
	for _, c := range []struct{ alpha, slope float64 }{{1.5, 1}, {2, 1}, {2.5, 1.25}, {3, 1.5}} {
		p := Multipass{Alpha: c.alpha, R: 1 / (2 * c.alpha)}
		if p.Hard() != (c.alpha > 2) {
			t.Errorf("α = %g: hard is %v", c.alpha, p.Hard())
		}
		requireSlope(t, "t", c.slope, func(n int) float64 { return float64(must[Averaged](t)(p.Settings(n)).Steps) })
		if s := must[Averaged](t)(p.Settings(100)); math.Abs(s.Rate-0.5) > 1e-12 || !s.Optimal {
			t.Errorf("α = %g: %+v", c.alpha, s)
		}
	}
	p := Multipass{Alpha: 4, R: 0.1, Mu: 0.8}
	s := must[Averaged](t)(p.Settings(1000))
	if want := math.Ceil(math.Pow(1000*math.Log(1000), 1.25)); float64(s.Steps) != want || math.Abs(s.Rate-0.25) > 1e-12 || s.Optimal {
		t.Errorf("%+v, want %g steps", s, want)
	}
	// Easy problems take smaller steps as n grows, with ¼ as the limiting case.
	requireSlope(t, "γ", -1.0/3, func(n int) float64 {
		return must[Averaged](t)(Multipass{Alpha: 2, R: 0.5}.Settings(n)).StepSize
	})
	if s := must[Averaged](t)(Multipass{Alpha: 2, R: 0.25}.Settings(77)); s.StepSize != 0.25 || s.Steps != 77 {
		t.Errorf("limiting case: %+v", s)
	}
}

func TestSpace(t *testing.T) {
	for _, name := range algorithms {
		for _, n := range []int{1, 2, 100, 20000, 1 << 40} {
			dims := must[[]Dimension](t)(Space(name, Data{Rows: n, MedianDistance: 3}))
			high := 30.0
			if slices.Contains([]string{"falkon", "krr", "nystrom"}, name) {
				high = 900
			}
			for _, d := range dims {
				if d.Scale == Choice {
					if len(d.Choices) < 2 {
						t.Errorf("%s: %+v", name, d)
					}
					continue
				}
				if !(d.Low > 0 && d.Low <= d.Start && d.Start <= d.High) || d.Integer && d.Start != math.Trunc(d.Start) {
					t.Errorf("%s, n = %d: %+v", name, n, d)
				}
				if d.Low < d.Least || d.High > d.Most || !d.Integer && (d.Low == d.Least || d.High == d.Most) {
					t.Errorf("%s, n = %d: beyond what the learner takes: %+v", name, n, d)
				}
			}
			if l := dims[1]; l.Name != "length-scale" || l.Start != 3 || math.Abs(l.Low-0.3) > 1e-12 || l.High != high {
				t.Errorf("%s: %+v", name, l)
			}
		}
	}
}

func TestOutOfRange(t *testing.T) {
	nan := math.NaN()
	ignore := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"n":               ignore(Lambda(0, WorstCase())),
		"r":               ignore(Lambda(10, Regularity{0.4, 1})),
		"r ":              ignore(MiniBatches.Settings(10, Regularity{nan, 1})),
		"alpha":           ignore(Lambda(10, Regularity{0.5, 1.1})),
		"alpha ":          ignore(Lambda(10, Regularity{0.5, nan})),
		"schedule":        ignore(Schedule("fast").Settings(10, WorstCase())),
		"lambda":          ignore(PracticalCenters(10, 1, 2, 1)),
		"kappa²":          ignore(PracticalCenters(10, 1, 0.1, 0)),
		"dim":             ignore(PracticalCenters(10, nan, 0.1, 1)),
		"zeta":            ignore(DoublyOnline{Gamma: 1}.Fixed(10)),
		"zeta ":           ignore(DoublyOnline{Zeta: 1.5, Gamma: 0.5}.Regularised(10, 0.1)),
		"gamma":           ignore(DoublyOnline{Zeta: 1, Gamma: 1}.Decaying()),
		"gamma ":          ignore(DoublyOnline{Zeta: 1, Gamma: -1}.Fixed(10)),
		"T":               ignore(DoublyOnline{Zeta: 1, Gamma: 1}.Fixed(0)),
		"epsilon":         ignore(DoublyOnline{Zeta: 1, Gamma: 0.5}.Regularised(10, 0.9)),
		"c_mu":            ignore(DoublyOnline{Zeta: 1}.InSpace(10, 0)),
		"alpha  ":         ignore(Multipass{Alpha: 1, R: 0.5}.Settings(10)),
		"mu":              ignore(Multipass{Alpha: 2, R: 0.5, Mu: 1.5}.Settings(10)),
		"algorithm":       ignore(Space("svm", Data{Rows: 3})),
		"median distance": ignore(Space("krr", Data{Rows: 3, MedianDistance: -1})),
	} {
		var p *learners.ParameterError
		if !errors.As(err, &p) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if trimmed := trimRight(name); p.Parameter != trimmed || p.Want == "" || p.In != "theory" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func trimRight(s string) string {
	for len(s) > 0 && s[len(s)-1] == ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// A power law has its exponent as slope.
func TestSlope(t *testing.T) {
	if s := Slope([]int{10, 100, 1000}, []float64{5, 50, 500}); math.Abs(s-1) > 1e-14 {
		t.Errorf("slope %g", s)
	}
}
