package falkon

import (
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/learners"
)

// losses is a loss of the outputs f of one row, with the weight s of the row.
type losses interface {
	// gradient replaces f by s times the gradient, and adds s times the loss, in units of
	// unit, to sum. y are the targets.
	gradient(f, y []float64, s float64, sum *lossSum)
	// curvature returns the mean of the diagonal of the Hessian W.
	curvature(f, y []float64) float64
	// curve replaces u by sWu, for the systems that are left, see [newton.hessian].
	curve(u, f, y []float64, left []int, s float64)
	unit() float64
	link() learners.Link
}

// each is a loss ℓ(f, y) of each output, which is a system, with its derivatives by f.
type each struct {
	value, slope, curvatureOf func(f, y float64) float64
	scale                     float64
	meaning                   learners.Link
}

func (l *each) gradient(f, y []float64, s float64, sum *lossSum) {
	for j, v := range f {
		sum.add(s * l.value(v, y[j]) / l.scale)
		f[j] = s * l.slope(v, y[j])
	}
}

func (l *each) curvature(f, y []float64) float64 {
	mean := 0.0
	for j, v := range f {
		mean += l.curvatureOf(v, y[j]) / float64(len(f))
	}
	return mean
}

func (l *each) curve(u, f, y []float64, left []int, s float64) {
	for at := range u {
		j := left[at%len(left)]
		u[at] *= s * l.curvatureOf(f[j], y[j])
	}
}

func (l *each) unit() float64 { return l.scale }

func (l *each) link() learners.Link { return l.meaning }

// logistic is log(1 + exp(−yf)).
var logistic = &each{
	value:       func(f, y float64) float64 { return softplus(-y * f) },
	slope:       func(f, y float64) float64 { return -y * sigmoid(-y*f) },
	curvatureOf: func(f, _ float64) float64 { return curvatureAt(f) },
	scale:       1,
	meaning:     learners.Logistic,
}

// softmax is log Σ_j exp(f_j) − f_k of the class k. All outputs are one system.
type softmax struct{}

func (softmax) gradient(f, y []float64, s float64, sum *lossSum) {
	class := 0.0
	for j, v := range f {
		if y[j] > 0 {
			class = v
		}
	}
	// The loss may be below 0 by rounding.
	sum.add(s * max(learners.ToSoftmax(f)-class, 0))
	for j, v := range y {
		if v > 0 {
			f[j]--
		}
		f[j] *= s
	}
}

func (softmax) curvature(f, _ []float64) float64 {
	learners.ToSoftmax(f)
	mean := 0.0
	for _, p := range f {
		mean += p * (1 - p) / float64(len(f))
	}
	return mean
}

func (softmax) curve(u, f, _ []float64, _ []int, s float64) {
	learners.ToSoftmax(f)
	curveSoftmax(u, f, s)
}

// curveSoftmax replaces u by sWu for the probabilities p.
func curveSoftmax(u, p []float64, s float64) {
	times := len(u) / len(p)
	for k := range times {
		mean := 0.0
		for j, v := range p {
			mean += v * u[j*times+k]
		}
		for j, v := range p {
			u[j*times+k] = s * v * (u[j*times+k] - mean)
		}
	}
}

func (softmax) unit() float64 { return 1 }

func (softmax) link() learners.Link { return learners.Softmax }

// checkClasses notes the first row whose targets are no classes.
func (f *fit) checkClasses(row int, y []float64) {
	if f.strange != nil {
		return
	}
	c := f.train.Outputs()
	for i := range len(y) / c {
		positive := 0
		for _, v := range y[i*c:][:c] {
			if v != 1 && v != -1 && v-v == 0 {
				f.strange = &learners.DataError{Data: "training data", Reason: fmt.Sprintf("the target of row %d is %v; the logistic loss is for classes, coded −1 and +1", row+i+1, v)}
				return
			}
			if v > 0 {
				positive++
			}
		}
		if f.exclusive && positive != 1 {
			f.strange = &learners.DataError{Data: "training data", Reason: fmt.Sprintf("row %d has %d classes; the multinomial loss is for one class a row", row+i+1, positive)}
			return
		}
	}
}

// sigmoid is 1/(1 + exp(−t)), softplus is log(1 + exp(t)), and curvatureAt is p(1 − p).
func sigmoid(t float64) float64 { return 1 / (1 + math.Exp(-t)) }

func softplus(t float64) float64 { return max(t, 0) + math.Log1p(math.Exp(-math.Abs(t))) }

func curvatureAt(f float64) float64 {
	e := math.Exp(-math.Abs(f))
	return e / ((1 + e) * (1 + e))
}
