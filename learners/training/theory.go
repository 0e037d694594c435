package training

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/stream"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/theory"
	"github.com/bkbtuner/bkb/sketch"
)

// HasTheory reports whether a theorem gives settings, see [Run].
func (a *Algorithm) HasTheory() bool { return a.Name != logFalkon.Name }

// capacity is what the rows say about the kernel's space.
type capacity struct {
	alpha  float64        // N(λ) falls as λ^−α between κ²/n and κ²/√n
	levels []sketch.Level // with estimates of N(λ) for these λ
}

// capacityPoints and capacityRows limit the dictionary and the rows of an estimate.
const capacityPoints, capacityRows = 1000, 20_000

// capacityOf estimates α by the slope of log N(λ) along one path of BLESS. It is 1, which is
// always true, where the rows are too few.
func capacityOf(ctx context.Context, k kernel.Kernel, src kernel.Source, seed uint64) (capacity, error) {
	n, c := float64(src.Len()), capacity{alpha: 1}
	d, err := sketch.BLESS{MaxPoints: capacityPoints, MaxCandidates: capacityRows}.Sample(
		ctx, k, src, k.Bound()/n, stream.New(stream.Derive(seed, "training/theory", 0)))
	if err != nil {
		return c, err
	}
	var inverse, dimension []float64
	for _, l := range d.Path {
		if l.EffectiveDimension > 0 && l.Lambda <= 1.01*k.Bound()/math.Sqrt(n) {
			c.levels = append(c.levels, l)
			inverse, dimension = append(inverse, 1/l.Lambda), append(dimension, l.EffectiveDimension)
		}
	}
	if len(inverse) > 2 {
		c.alpha = min(max(theory.Slope(inverse, dimension), 0), 1)
	}
	return c, nil
}

// dimension returns N(λ), continued as λ^−α from the nearest estimate.
func (c capacity) dimension(lambda float64) float64 {
	out, nearest := math.Pow(lambda, -c.alpha), math.Inf(1)
	for _, l := range c.levels {
		if far := math.Abs(math.Log(l.Lambda / lambda)); far < nearest {
			out, nearest = l.EffectiveDimension*math.Pow(l.Lambda/lambda, c.alpha), far
		}
	}
	return out
}

// theoretical returns the values of v, and for the others those of a theorem for n rows and the
// regularity r. The notes name them, the theorem and its assumptions.
func (a *Algorithm) theoretical(ctx context.Context, v Values, src data.Source, p Problem, n int, r float64, seed uint64) (Values, []string, error) {
	if err := a.Check(v); err != nil {
		return nil, nil, err
	}
	in := reader{a, v}
	k, err := in.kernel(p)
	if err != nil {
		return nil, nil, err
	}
	bound := k.Bound()
	if !a.HasTheory() || !(bound > 0 && bound <= math.MaxFloat64) {
		return nil, nil, a.refused("kernel", in.text("kernel"), "one with a bound, such as gaussian, and a learner that a theorem has settings for")
	}
	if in.text(metricName) == fullMetric {
		src = data.Map(src, p.Metric.L)
	}
	c, err := capacityOf(ctx, k, src, seed)
	if err != nil {
		return nil, nil, err
	}
	g := theory.Regularity{R: r, Alpha: c.alpha}
	out, said := Values{}, ""
	set := func(name string, x float64) {
		out[name] = strconv.FormatFloat(x, 'g', 6, 64)
		if x == math.Trunc(x) && math.Abs(x) < math.MaxInt32 {
			out[name] = strconv.Itoa(int(x))
		}
	}
	whole := func(x float64) float64 { return max(1, math.Round(x)) }
	ridge := func() (lambda float64, err error) {
		if lambda = in.real("lambda", 0); lambda > 0 { // other settings follow from it
			out["lambda"] = v["lambda"]
			return lambda, nil
		}
		lambda, err = theory.Lambda(n, g)
		lambda *= bound
		set("lambda", lambda)
		return lambda, err
	}
	noise := "the distribution of y given x has bounded or sub-exponential noise"
	switch a.Name {
	case sgdRF.Name:
		s, failed := theory.MiniBatches.Settings(n, g)
		err = failed
		set("random-features", float64(s.Features+s.Features%2))
		set("batch-size", float64(s.BatchSize))
		set("step-size", s.StepSize/bound)
		set("passes", whole(s.Passes))
		out["averaging"] = "none"
		t := float64(s.Iterations)
		said = fmt.Sprintf("M = %s features, b = %d rows, γ = %s, T = %d steps, %.3g passes: Corollary 6 (c2.3) of Carratino (2020), where γ and M are orders. Its Theorem 2 asks for γ ≤ %.2g",
			out["random-features"], s.BatchSize, out["step-size"], s.Iterations, s.Passes, min(float64(n)/(9*t*math.Log(10*float64(n))), 1/(8*(1+math.Log(t))))/bound)
	case falkonAlgorithm.Name, nystromAlgorithm.Name:
		lambda, failed := ridge()
		if err = failed; err != nil {
			break
		}
		dim, centers := c.dimension(lambda), "leverage scores"
		out["sampler"] = "bless"
		if name, given := v["sampler"]; given && name != "bless" {
			out["sampler"] = name
		}
		if s := out["sampler"]; s == "uniform" || s == Auto || s == "rpcholesky" {
			dim, centers = bound/lambda, "N_∞ ≤ κ²/λ"
		} else {
			set("sampler-lambda", lambda/1000) // so that M ends the path
		}
		m, failed := theory.PracticalCenters(n, dim, lambda, bound)
		err = failed
		set("centers", float64(m))
		said = fmt.Sprintf("λ = %s, M = %d centres by %s: ", out["lambda"], m, centers)
		if a.Name == falkonAlgorithm.Name {
			most, failed := largestTarget(ctx, src)
			if err = failed; err != nil {
				break
			}
			set("iterations", math.Ceil(math.Log(float64(n))+5+2*math.Log(2*most+3*bound)))
			said += fmt.Sprintf("t = %s iterations: Theorems 7 and 8 of Carratino (2020), with the constant 1 in place of 70 or 220 in M", out["iterations"])
			noise = "targets are bounded"
		} else {
			said += "(2.55) and §4.1 of Carratino (2020), with M of Theorem 7 and the constant 1 in it"
		}
	case ridgeRegression.Name:
		_, err = ridge()
		said = fmt.Sprintf("λ = %s: (2.55) of Carratino (2020)", out["lambda"])
	case landweberAlgorithm.Name:
		lambda, failed := theory.Lambda(n, g)
		err = failed
		set("iterations", whole(math.Ceil(1/lambda-1e-9)))
		said = fmt.Sprintf("t = %s iterations: §2.4 of Carratino (2020) with the λ = 1/t of (2.55)", out["iterations"])
	case averagedSGD.Name:
		s, failed := theory.Multipass{Alpha: 1 / min(max(c.alpha, 0.01), 0.99), R: r}.Settings(n)
		err = failed
		set("step-size", s.StepSize/bound)
		set("passes", whole(s.Passes))
		out["averaging"] = "all"
		said = fmt.Sprintf("γ = %s, t = %d steps, %.3g passes: Theorem 1 of Pillaud-Vivien, Rudi and Bach (2018), with μ = α here, or one pass by its §2.2 where that is enough", out["step-size"], s.Steps, s.Passes)
		noise = "targets and noise are bounded"
	case doublyOnline.Name:
		s, failed := theory.DoublyOnline{Zeta: r, Gamma: c.alpha, KappaSq: max(1, 2*bound)}.Fixed(n)
		err = failed
		set("step-size", s.StepSize)
		out["passes"], out["lambda"], out["step-decay"] = "1", "0", "0"
		said = fmt.Sprintf("η = %s, λ = 0, T = %d steps, 1 pass: Corollary 3.2 of Lin and Rosasco (2019), with κ² = %.3g of the features and c_γ = κ². Steps 20 times as large are often better", out["step-size"], n, max(1, 2*bound))
		noise = "targets have bounded moments"
	}
	if err != nil {
		return nil, nil, err
	}
	var given []string
	for _, name := range slices.Sorted(maps.Keys(v)) {
		if theirs, ok := out[name]; ok && (theirs != v[name] || name == "lambda") {
			given = append(given, name+" "+v[name])
		}
	}
	maps.Copy(out, v)
	from := "no estimate, because the rows are too few"
	if m := len(c.levels) - 1; m > 1 {
		from = fmt.Sprintf("estimated from an effective dimension of %.3g at λ = %.2g and %.3g at λ = %.2g", c.levels[0].EffectiveDimension, c.levels[0].Lambda, c.levels[m].EffectiveDimension, c.levels[m].Lambda)
	}
	notes := []string{
		"theory has " + said,
		fmt.Sprintf("theory assumes r = %g (--regularity), α = %.3g (%s), and that %s", r, c.alpha, from, noise),
		"data tell α of this kernel at these λ. They cannot tell r, because n rows never show how smooth the target is at smaller scales. r = 0.5 only assumes that the kernel's space has a best function. If a larger r has a clearly smaller validation error, it suits these rows",
	}
	if given != nil {
		notes = append(notes, "the theorem does not speak of the given "+strings.Join(given, ", "))
	}
	return out, notes, nil
}

// largestTarget returns the largest absolute target.
func largestTarget(ctx context.Context, src data.Source) (most float64, err error) {
	y, err := data.Targets(ctx, src)
	for _, v := range y {
		most = max(most, math.Abs(v))
	}
	return most, err
}
