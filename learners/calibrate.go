package learners

import (
	"context"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// Calibrated is a classifier of the squared loss whose scores are turned into logits,
// slope_j·f_j + offset_j for output j, so that the link is Logistic. The class of a row is
// the most probable one. For two classes it may differ from the sign of f.
type Calibrated struct {
	base    Model
	scaling calibration
}

// calibration is the part of a Calibrated in a file.
type calibration struct {
	Slope  []float64 `json:"slope"`
	Offset []float64 `json:"offset"`
}

var _ Linked = (*Calibrated)(nil)

// Calibrate returns a model with probabilities by the scaling of Platt (1999). It fits a
// logistic function of each output to held-out rows, by the outputs of a fit of the same kind
// that did not see them. That may be m itself. weights are those of the rows, or nil. It returns
// a *DataError if the rows lack one of the two classes of an output, or if the model has
// probabilities already.
func Calibrate(ctx context.Context, m, judged Model, held data.Source, weights []float64) (*Calibrated, error) {
	y, err := Targets(ctx, held)
	if err != nil {
		return nil, err
	}
	f := make([]float64, len(y))
	if err := judged.Predict(ctx, f, held); err != nil {
		return nil, err
	}
	return CalibrateOn(m, f, y, weights)
}

// CalibrateOn is Calibrate for outputs and targets, n×c, of held-out rows. The outputs may
// be those of other models of the same kind, such as the models of a cross-validation.
func CalibrateOn(m Model, f, y, weights []float64) (*Calibrated, error) {
	if LinkOf(m) != Expected {
		return nil, &DataError{Data: "the model", Reason: "it has probabilities already, and only scores of the squared loss need calibration"}
	}
	c := m.Outputs()
	out := &Calibrated{m, calibration{make([]float64, c), make([]float64, c)}}
	s := Scoring{Weights: weights}
	for j := range c {
		var ok bool
		if out.scaling.Slope[j], out.scaling.Offset[j], ok = platt(f, y, j, c, s.weight); !ok {
			return nil, &DataError{Data: "the rows for calibration", Reason: fmt.Sprintf("output %d has rows of one class only; hold out more rows", j+1)}
		}
	}
	return out, nil
}

const (
	plattSteps     = 100
	plattTolerance = 1e-10
	plattRidge     = 1e-10 // relative to the number of rows, for scores that are all equal
)

// platt returns the slope and the offset of the logistic function of output j. As targets
// it takes (n₊ + 1)/(n₊ + 2) and 1/(n₋ + 2) for 1 and 0, which are the means of their
// posteriors, and it uses Newton's method with halved steps (Platt 1999, Lin, Lin and
// Weng 2007). ok is false if a class has no row.
func platt(f, y []float64, j, c int, weight func(row int) float64) (slope, offset float64, ok bool) {
	n := len(y) / c
	var positive, negative float64
	for i := range n {
		if y[i*c+j] > 0 {
			positive += weight(i)
		} else {
			negative += weight(i)
		}
	}
	if positive == 0 || negative == 0 {
		return 0, 0, false
	}
	high, low := (positive+1)/(positive+2), 1/(negative+2)
	target := func(i int) float64 {
		if y[i*c+j] > 0 {
			return high
		}
		return low
	}
	loss := func(a, b float64) float64 {
		sum := 0.0
		for i := range n {
			t := a*f[i*c+j] + b
			sum += weight(i) * (logistic(t) - target(i)*t)
		}
		return sum
	}
	offset = math.Log((positive + 1) / (negative + 1))
	now := loss(0, offset)
	for range plattSteps {
		ridge := plattRidge * (positive + negative)
		haa, hab, hbb, ga, gb := ridge, 0.0, ridge, 0.0, 0.0
		for i := range n {
			v := f[i*c+j]
			p := Logistic.probability(slope*v + offset)
			e, w := weight(i)*(p-target(i)), weight(i)*p*(1-p)
			ga, gb = ga+e*v, gb+e
			haa, hab, hbb = haa+w*v*v, hab+w*v, hbb+w
		}
		det := haa*hbb - hab*hab
		da, db := (hab*gb-hbb*ga)/det, (hab*ga-haa*gb)/det
		decrease := ga*da + gb*db
		if !(decrease < -plattTolerance*(positive+negative)) {
			break
		}
		step, next := 1.0, 0.0
		for next = loss(slope+da, offset+db); step > 1e-10 && !(next <= now+1e-4*step*decrease); {
			step /= 2
			next = loss(slope+step*da, offset+step*db)
		}
		slope, offset, now = slope+step*da, offset+step*db, next
	}
	return slope, offset, true
}

// Dim returns d.
func (m *Calibrated) Dim() int { return m.base.Dim() }

// Outputs returns c.
func (m *Calibrated) Outputs() int { return m.base.Outputs() }

// Link returns Logistic.
func (m *Calibrated) Link() Link { return Logistic }

// Predict sets dst, n×c, to logits.
func (m *Calibrated) Predict(ctx context.Context, dst []float64, x kernel.Source) error {
	if err := m.base.Predict(ctx, dst, x); err != nil {
		return err
	}
	c := m.Outputs()
	for i, f := range dst {
		dst[i] = m.scaling.Slope[i%c]*f + m.scaling.Offset[i%c]
	}
	return nil
}

// calibrated is the link of a Calibrated in a file. A program that does not know it
// refuses the file.
const calibrated Link = "calibrated"

// apply returns the model with the calibration.
func (c *calibration) apply(m Model) (Model, error) {
	if c == nil || len(c.Slope) != m.Outputs() || len(c.Offset) != m.Outputs() {
		return nil, &FormatError{Reason: fmt.Sprintf("a calibrated model of %d outputs without as many slopes and offsets", m.Outputs())}
	}
	return &Calibrated{m, *c}, nil
}
