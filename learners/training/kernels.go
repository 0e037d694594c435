package training

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// kernels are the names that NewKernel accepts, those of package kernel with hyphens.
var kernels = familyNames(func(f kernel.Family) bool { return f.Points })

func familyNames(wanted func(kernel.Family) bool) []string {
	var names []string
	for _, f := range kernel.Families() {
		if wanted(f) {
			names = append(names, strings.ReplaceAll(f.Name, "_", "-"))
		}
	}
	return names
}

// newKernel returns a kernel by name with one length scale, or one for each coordinate.
// degree and offset are those of the polynomial kernel.
func newKernel(name string, lengths []float64, degree int, offset float64) (kernel.Kernel, error) {
	if !slices.Contains(kernels, name) {
		return nil, fmt.Errorf("kernel %q is not one of %v", name, kernels)
	}
	return kernel.New(kernel.Spec{
		Name: strings.ReplaceAll(name, "-", "_"), LengthScales: lengths,
		Params: map[string]float64{"alpha": 1, "degree": float64(degree), "offset": offset}, // a kernel reads its own
	}, nil)
}

// NewKernel returns a kernel by name with its length scales, of which lengthScale is the
// text.
func NewKernel(name, lengthScale string, p Problem) (kernel.Kernel, []float64, error) {
	scale := Parameter{Name: lengthScaleName, Kind: Lengths}
	if want := scale.refuse(lengthScale); want != "" {
		return nil, nil, fmt.Errorf("%s %q must be %s", lengthScaleName, lengthScale, want)
	}
	lengths, err := p.lengths(lengthScale)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", lengthScaleName, err)
	}
	k, err := newKernel(name, lengths, 3, 1)
	return k, lengths, err
}

// LaplaceKernel is the kernel of the sum of distances by coordinate. Its learned length scales differ from
// those of functions of the Euclidean distance.
const LaplaceKernel = "laplace"

const (
	lengthScaleName  = "length-scale"
	relevanceName    = "relevance"
	equalRelevance   = "equal"
	learnedRelevance = "learned"
)

// kernel returns the kernel of the parameters that withKernel adds.
func (r reader) kernel(p Problem) (kernel.Kernel, error) {
	lengths, err := r.lengths(p)
	if err != nil {
		return nil, err
	}
	return newKernel(r.text("kernel"), lengths, r.count("degree", 0), r.real("offset", 0))
}

// LearnedFor returns the learned length scales of a kernel, or nil.
func (p Problem) LearnedFor(kernel string) *Learned {
	if kernel == LaplaceKernel && p.Laplace != nil {
		return p.Laplace
	}
	return p.Learned
}

// learns reports whether the values need Problem.Learned.
func (r reader) learns() bool {
	return r.text("kernel") != linearModel && (r.text(lengthScaleName) == Auto || r.text(relevanceName) == learnedRelevance)
}

// lengths returns the length scales. With learned relevance, a length scale σ stands for
// the learned ones times a factor. With it the median distance of the divided rows has
// the same ratio to 1 as the median distance of the rows has to σ.
func (r reader) lengths(p Problem) ([]float64, error) {
	text, l := r.text(lengthScaleName), p.LearnedFor(r.text("kernel"))
	refused := func(want string) error {
		return r.a.refused(lengthScaleName, fmt.Sprintf("%d numbers", strings.Count(text, ",")+1), want)
	}
	switch {
	case r.learns() && l == nil:
		return nil, r.a.refused(lengthScaleName, Auto, "a call of Learn before, or "+Median)
	case r.learns() && text == Auto:
		return slices.Clone(l.Lengths), nil
	case r.learns() && strings.Contains(text, ","):
		return nil, refused("one number, median or auto where relevance is learned")
	}
	lengths, err := p.lengths(text)
	if err != nil {
		return nil, refused(err.Error())
	}
	if !r.learns() {
		return lengths, nil
	}
	sigma := lengths[0]
	lengths = make([]float64, len(l.Lengths))
	for c, x := range l.Lengths {
		lengths[c] = x * l.MedianDistance * sigma / p.MedianDistance
	}
	return lengths, nil
}

// ridge returns λ for Auto. It is that of the learned length scales where they are used
// as they are, and κ²/n elsewhere. It is not learned for the logistic loss, which has
// another scale.
func (r reader) ridge(k kernel.Kernel, p Problem) float64 {
	if r.learns() && r.text(lengthScaleName) == Auto && r.a.Name != logFalkon.Name {
		return p.LearnedFor(r.text("kernel")).Ridge / float64(p.Rows)
	}
	if r.text(metricName) == fullMetric && r.a.Name != logFalkon.Name && p.Metric != nil && p.Metric.Lambda > 0 {
		return p.Metric.Lambda
	}
	return kappaSqOf(k) / float64(p.Rows)
}

// lengths returns the length scales that a checked text stands for. The error says what
// their number must be.
func (p Problem) lengths(text string) ([]float64, error) {
	if text == Median {
		return []float64{p.MedianDistance}, nil
	}
	lengths, err := parseLengths(text)
	if err != nil {
		panic("training: unchecked length scales")
	}
	if n := len(lengths); n > 1 && n != p.Dim {
		return nil, fmt.Errorf("1 number, or %d with commas between, one for each encoded input", p.Dim)
	}
	return lengths, nil
}

// parseLengths reads positive numbers with commas between.
func parseLengths(text string) ([]float64, error) {
	var out []float64
	for part := range strings.SplitSeq(text, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 64)
		if err != nil || !(x > 0) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%q is not a number above 0", part)
		}
		out = append(out, x)
	}
	return out, nil
}

// FormatLengths writes length scales as the hyper-parameter has them.
func FormatLengths(lengths []float64) string {
	words := make([]string, len(lengths))
	for i, x := range lengths {
		words[i] = strconv.FormatFloat(x, 'g', -1, 64)
	}
	return strings.Join(words, ",")
}
