package falkon

import (
	"cmp"
	"context"
	"math"

	"github.com/bkbtuner/bkb/internal/blocked"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

var _ learners.Estimator = LogisticParams{}

// Multiclass says how probabilities of more than two classes are learned.
type Multiclass string

const (
	// OneVsRest fits each class against all others, by the logistic loss.
	OneVsRest Multiclass = ""
	// SoftmaxLoss fits all classes together, by the multinomial loss.
	SoftmaxLoss Multiclass = "softmax"
)

// LogisticParams is FALKON for the logistic loss and targets y = ±1, output by output.
//
//	min_f  (1/n)Σ_i s_i log(1 + exp(−y_i f(x_i))) + (λ/2)‖f‖²
//
// With SoftmaxLoss and more than two classes it is FALKON for the multinomial loss. Row
// i has the class k_i, whose target is +1.
//
//	min_f  (1/n)Σ_i s_i (log Σ_j exp(f_j(x_i)) − f_{k_i}(x_i)) + (λ/2)Σ_j‖f_j‖²
//
// μ falls from κ²/100 to λ by the factor Decay a step, and each Newton step solves
//
//	(K_nMᵀ S W K_nM + μn K_MM) Δa = −gradient,  W = p(1 − p),  p = 1/(1 + exp(−f)),
//
// by conjugate gradients with FALKON's preconditioner, in which the mean of the diagonal of W over
// the outputs gives weights to the centres. A step that does not decrease the objective is halved.
// For the multinomial loss W is diag(p) − ppᵀ in each row, and the outputs are solved together. Its
// probabilities are kept between products, if they are 2 million at most, in 32 MiB. The outputs
// have the link learners.Logistic or learners.Softmax.
//
// The source is Marteau-Ferey, Bach and Rudi (2019), section 3, with the practical
// choices of the Falkon library.
type LogisticParams struct {
	// Params has the fields that the losses share. Its Solver must be zero. Iterations is the
	// largest number of Newton steps, or 0 for those from μ to λ and 10 more. Tolerance is the
	// norm ‖R⁻ᵀ∇‖ of the gradient that ends the fit, or 0 for 1e-3.
	Params
	// Multiclass is for more than two classes.
	Multiclass Multiclass
	// Steps is the largest number of iterations of conjugate gradients in a Newton step, or 0
	// for 20. They end at a relative residual of a tenth, or of √‖R⁻ᵀ∇‖ if that is less.
	Steps int
	// Decay is the factor between the μ, above 1. If 0, it is 100.
	Decay float64
}

const (
	defaultDecay       = 100
	defaultSteps       = 20
	defaultLogisticTol = 1e-3
	newtonStart        = 1e-2 // first μ, in units of κ²
	newtonMore         = 10   // steps at μ = λ
	forcing            = 0.1  // residual of a Newton step, relative
	nearEnough         = 0.03 // gradient at which a loss becomes sharper, relative
	maxHalvings        = 30
	mostKept           = 1 << 21 // probabilities of rows that are kept between products
)

// Validate returns a *learners.ParameterError for the first hyper-parameter out
// of range.
func (p LogisticParams) Validate() error {
	if err := p.Params.checkNewton(p.Steps, p.Decay); err != nil {
		return err
	}
	return learners.Require(p.Multiclass == OneVsRest || p.Multiclass == SoftmaxLoss, algorithm, "multiclass", p.Multiclass, `"" (one against the rest) or softmax`)
}

// checkNewton is Validate for a loss that takes Newton steps.
func (p Params) checkNewton(steps int, decay float64) error {
	return cmp.Or(
		p.Validate(),
		learners.Require(p.Solver == ConjugateGradient, algorithm, "solver", p.Solver, "conjugate gradients for losses other than the squared one"),
		learners.AtLeast(algorithm, "steps", steps, 0),
		learners.Require(decay == 0 || decay > 1 && decay <= math.MaxFloat64, algorithm, "decay", decay, "above 1 and finite, or 0 for 100"),
	)
}

// Fit learns from the n rows of train, see [learners.Estimator]. Their targets must be
// ±1, and for the multinomial loss +1 for one class. An iteration is a Newton step, of up to Steps + 1 passes. Its
// errors are those of [Params.Fit].
func (p LogisticParams) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	w, err := p.newton(ctx, train, o, mostKept)
	if err != nil {
		return nil, err
	}
	return w.fitAll(ctx, o)
}

// newton returns Newton's method, which keeps up to most probabilities of rows between products.
func (p LogisticParams) newton(ctx context.Context, train data.Source, o learners.Options, most int) (*newton, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	w, err := p.newNewton(ctx, p.Decay, p.Steps, train, o)
	if err != nil {
		return nil, err
	}
	w.classes, w.losses = true, logistic
	if p.Multiclass == SoftmaxLoss && train.Outputs() > 1 {
		w.exclusive, w.losses, w.columns = true, softmax{}, 1
		if size := w.train.Len() * train.Outputs(); size <= most {
			w.kept, w.fresh = make([]float64, size), make([]float64, size)
		}
	}
	return w, nil
}

// newNewton returns Newton's method for valid p, without its losses.
func (p Params) newNewton(ctx context.Context, decay float64, steps int, train data.Source, o learners.Options) (*newton, error) {
	if err := learners.Check(train, o); err != nil {
		return nil, err
	}
	f, err := newFit(ctx, p, train, o)
	if err != nil {
		return nil, err
	}
	w := &newton{
		fit: f, columns: f.train.Outputs(), decay: cmp.Or(decay, defaultDecay), steps: cmp.Or(steps, defaultSteps),
		tolerance: cmp.Or(p.Tolerance, defaultLogisticTol), lambda: f.Lambda,
	}
	w.mu = max(f.Lambda, newtonStart*f.kappaSq)
	if f.Iterations = p.Iterations; p.Iterations == 0 {
		f.Iterations = newtonMore + descentSteps(f.Lambda, f.kappaSq, w.decay)
	}
	return w, nil
}

// fitAll chooses the centres and returns the model.
func (w *newton) fitAll(ctx context.Context, o learners.Options) (learners.Model, error) {
	f := w.fit
	monitor, err := learners.NewMonitor(ctx, algorithm, f.Iterations, f.train, o)
	if err != nil {
		return nil, err
	}
	f.Lambda = w.mu
	defer f.close()
	if err := f.open(ctx, o.Seed); err != nil {
		return nil, err
	}
	return monitor.Finish(w.run(ctx, monitor))
}

// descentSteps is the number of Newton steps with μ above λ.
func descentSteps(lambda, kappaSq, decay float64) int {
	return max(int(math.Ceil(math.Log(newtonStart*kappaSq/lambda)/math.Log(decay))), 0)
}

// newton is the state of Newton's method.
type newton struct {
	*fit
	losses           losses
	columns          int // systems that are solved at once, each for its own outputs
	decay, tolerance float64
	steps            int
	lambda, mu       float64

	v        []float64 // coordinates of f, q×c
	a        []float64 // coefficients of f
	gradient []float64 // of the mean loss, in coordinates
	loss     float64   // mean

	// kept has the probabilities of the multinomial loss at a, and fresh is memory for those at
	// another a. They are nil if each product computes them.
	kept, fresh []float64

	// sharpen, if not nil, makes the loss sharper after a step at μ = λ, and reports
	// whether it changed.
	sharpen func() bool
	begin   func() // sets the losses once the targets are read, or nil
}

// run makes Newton steps until the gradient is small. It starts at f = 0.
func (w *newton) run(ctx context.Context, m *learners.Monitor) error {
	if err := w.start(ctx); err != nil {
		return err
	}
	for t := 1; t <= w.Iterations; t++ {
		decrement, err := w.step(ctx)
		if err != nil {
			return err
		}
		stop, err := m.Step(ctx, w.iterate(t, decrement))
		if stop || err != nil {
			return err
		}
		size := math.Sqrt(w.losses.unit())
		sharper := w.mu == w.lambda && decrement <= max(w.tolerance, nearEnough)*size && w.sharpen != nil && w.sharpen()
		if w.mu == w.lambda && !sharper && decrement <= w.tolerance*size {
			return nil
		}
		w.mu = max(w.lambda, w.mu/w.decay)
		if sharper {
			if w.gradient, w.loss, err = w.evaluate(ctx, w.a); err != nil {
				return err
			}
			w.keep()
		}
	}
	return nil
}

// start evaluates f = 0. For the logistic loss the gradient there is −½K_nMᵀSy/n, which
// the system has computed.
func (w *newton) start(ctx context.Context) (err error) {
	if w.begin != nil {
		w.begin()
	}
	s := w.sys
	w.v, w.a = make([]float64, s.rank()*s.c), make([]float64, s.op.Cols()*s.c)
	if w.losses != logistic {
		w.gradient, w.loss, err = w.evaluate(ctx, w.a)
		w.keep()
		return err
	}
	w.gradient = make([]float64, len(w.v))
	for i, z := range s.z {
		w.gradient[i] = -z / 2
	}
	for _, v := range s.yy {
		w.loss += v * math.Ln2 // y² = 1
	}
	return nil
}

func (w *newton) iterate(t int, decrement float64) learners.Iterate {
	w.noteEnd(t, decrement)
	s, a, points := w.sys, w.a, w.points
	return learners.Iterate{
		Iteration: t, Passes: float64(s.passes), Rows: int64(s.passes) * int64(s.n),
		Objective: w.objective(w.loss, w.v, w.lambda), Residual: decrement, Notes: w.takeNotes(),
		Model: func() (learners.Model, error) {
			e, err := learners.NewExpansion(w.Kernel, points, a, s.c)
			if err != nil {
				return nil, err
			}
			return e.WithLink(w.losses.link()), nil
		},
	}
}

// objective is the mean loss plus μ/2 times the squared norm of v.
func (w *newton) objective(loss float64, v []float64, mu float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return loss + mu/2*sum
}

// step makes a Newton step at μ, and returns ‖R⁻ᵀ∇‖ after it.
func (w *newton) step(ctx context.Context) (decrement float64, err error) {
	s := w.sys
	if !s.pre.set(w.curvature(), w.mu) {
		return 0, w.unsolvable(0)
	}
	s.lambda = w.mu
	right := w.residual()
	size := norms(right, 1)[0]
	if size == 0 {
		return 0, nil
	}
	g := newConjugate(nil, right, make([]float64, len(right)), append([]float64(nil), right...), w.columns, min(forcing, math.Sqrt(size)), roundingLimit)
	each := s.c / w.columns // outputs of a system
	g.apply = func(ctx context.Context, dst, u []float64, c int) error {
		return w.hessian(ctx, dst, u, each*c, g.left)
	}
	for range w.steps {
		if g.done() {
			break
		}
		if ok, err := g.iterate(ctx); err != nil {
			return 0, err
		} else if !ok {
			break
		}
	}
	s.pre.up(g.x, s.c)
	if err := w.move(ctx, g.x); err != nil {
		return 0, err
	}
	return norms(w.residual(), 1)[0], nil
}

// residual returns −R⁻ᵀ∇ of the objective at μ.
func (w *newton) residual() []float64 {
	r := make([]float64, len(w.v))
	for i, g := range w.gradient {
		r[i] = -(g + w.mu*w.v[i])
	}
	w.sys.pre.down(r, w.sys.c)
	return r
}

// curvature returns the weights of the centres for the preconditioner,
// w_j s_j p(1−p)/n with the mean of p(1−p) over the outputs.
func (w *newton) curvature() []float64 {
	pre, c := w.sys.pre, w.sys.c
	out, order := w.perRow(), pre.order()
	y := w.near
	if y == nil {
		y = make([]float64, len(out)*c)
	}
	f := make([]float64, min(assembleRows, len(order))*c)
	for i0 := 0; i0 < len(order); i0 += assembleRows {
		i1 := min(i0+assembleRows, len(order))
		cols := pre.factor.rows(pre.block, i0, i1)
		rows := blocked.New(i1-i0, cols, pre.block[:(i1-i0)*cols])
		multiply(w.workers, false, rows, w.v[:cols*c], 0, f[:(i1-i0)*c], c)
		for i := i0; i < i1; i++ {
			out[order[i]] *= w.losses.curvature(f[(i-i0)*c:][:c], y[order[i]*c:][:c])
		}
	}
	return out
}

// hessian sets dst = R⁻ᵀ(F⁻K_nMᵀSWK_nM F⁻ᵀ/n + μI)R⁻¹u for width columns, those of the systems
// left, once or twice over. If all outputs are one system, those of an output are side by side.
func (w *newton) hessian(ctx context.Context, dst, u []float64, width int, left []int) error {
	s := w.sys
	v := append([]float64(nil), u...)
	s.pre.up(v, width)
	p := make([]float64, s.op.Cols()*width)
	s.pre.factor.coefficients(p, v, width)
	if err := w.curved(ctx, p, width, left); err != nil {
		return err
	}
	s.passes++
	s.pre.factor.coordinates(dst, p, width)
	for i := range dst {
		dst[i] = dst[i]/float64(s.n) + w.mu*v[i]
	}
	s.pre.down(dst, width)
	return nil
}

// curved replaces p by K_nMᵀSWK_nM p, see hessian.
func (w *newton) curved(ctx context.Context, p []float64, width int, left []int) error {
	s := w.sys
	if w.kept != nil {
		return s.op.GramFunc(ctx, p, p, func(row int, t []float64) {
			for i := range len(t) / width {
				curveSoftmax(t[i*width:][:width], w.kept[(row+i)*s.c:][:s.c], w.Weight(row+i))
			}
		})
	}
	all := s.c + width
	both := make([]float64, s.op.Cols()*all)
	for i := range s.op.Cols() {
		copy(both[i*all:], w.a[i*s.c:][:s.c])
		copy(both[i*all+s.c:], p[i*width:][:width])
	}
	err := s.op.GramFunc(ctx, both, both, func(row int, t []float64) {
		y := w.targets.at(row)
		for i := range len(t) / all {
			f, kp := t[i*all:][:s.c], t[i*all+s.c:][:width]
			w.losses.curve(kp, f, y[i*s.c:][:s.c], left, w.Weight(row+i))
			clear(f)
		}
	})
	if err != nil {
		return err
	}
	for i := range s.op.Cols() {
		copy(p[i*width:][:width], both[i*all+s.c:])
	}
	return nil
}

// move adds a step Δv, halved until the objective is not larger than before.
func (w *newton) move(ctx context.Context, delta []float64) error {
	s := w.sys
	before := w.objective(w.loss, w.v, w.mu)
	next := make([]float64, len(w.v))
	a := make([]float64, len(w.a)) // w.a belongs to a model
	for range maxHalvings {
		for i, d := range delta {
			next[i] = w.v[i] + d
		}
		s.pre.factor.coefficients(a, next, s.c)
		gradient, loss, err := w.evaluate(ctx, a)
		if err != nil {
			return err
		}
		if after := w.objective(loss, next, w.mu); after <= before+lossUnit*w.losses.unit() {
			w.v, w.a, w.gradient, w.loss = next, a, gradient, loss
			w.keep()
			return nil
		}
		for i := range delta {
			delta[i] /= 2
		}
	}
	return nil // as small as rounding allows
}

// keep makes the probabilities of the last evaluation those at w.a.
func (w *newton) keep() { w.kept, w.fresh = w.fresh, w.kept }

// evaluate returns the gradient, in coordinates, and the mean loss of the function with
// coefficients a, in one pass. It fills fresh if that is memory.
func (w *newton) evaluate(ctx context.Context, a []float64) (gradient []float64, loss float64, err error) {
	s := w.sys
	var total lossSum
	out := make([]float64, len(a))
	err = s.op.GramFunc(ctx, out, a, func(row int, t []float64) {
		y := w.targets.at(row)
		part := lossSum{}
		for i := range len(t) / s.c {
			if w.fresh != nil {
				p := w.fresh[(row+i)*s.c:][:s.c]
				copy(p, t[i*s.c:])
				learners.ToSoftmax(p)
			}
			w.losses.gradient(t[i*s.c:][:s.c], y[i*s.c:][:s.c], w.Weight(row+i), &part)
		}
		total.merge(&part)
	})
	if err != nil {
		return nil, 0, err
	}
	s.passes++
	gradient = make([]float64, len(w.v))
	s.pre.factor.coordinates(gradient, out, s.c)
	for i := range gradient {
		gradient[i] /= float64(s.n)
	}
	return gradient, total.value() * w.losses.unit() / float64(s.n), nil
}
