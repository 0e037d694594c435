package falkon

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
)

var _ learners.Estimator = RobustParams{}

// RobustParams is FALKON for the losses of Huber and of quantiles, output by output.
//
//	min_f  (1/n)Σ_i s_i ℓ(y_i − f(x_i)) + (λ/2)‖f‖²
//
// It uses the Newton steps of LogisticParams with falling μ, which start from 0 and never
// increase the objective. The loss of Huber has a generalised second derivative, 1 for
// |r| ≤ δ and 0 beyond. For δ = ∞ the function is that of Params with the same λ. The
// loss of quantiles has none, and is replaced by
//
//	ℓ_h(r) = τr + h log(1 + exp(−r/h)),   ℓ ≤ ℓ_h ≤ ℓ + h log 2.
//
// Like the logistic loss it is generalised self-concordant, |ℓ‴| ≤ ℓ″/h, as Newton's
// method needs (Marteau-Ferey, Bach and Rudi, 2019). h starts at the root mean square of
// the targets. It falls by a factor of 5 whenever a step at μ = λ leaves a small gradient.
type RobustParams struct {
	// Params has the fields that the losses share. Its Solver must be zero.
	// Iterations is the largest number of Newton steps, or 0 for the number of steps from
	// μ to λ, 10 more, and 40 more for quantiles. Tolerance is the norm of the gradient
	// that ends the fit, as for LogisticParams, relative to the root of the loss of f = 0.
	Params
	// Loss is learners.HuberLoss or learners.QuantileLoss.
	Loss learners.Loss
	// Delta is δ > 0 of the Huber loss, in the units of the targets. If 0, it is 1.
	Delta float64
	// Quantile is τ of the quantile loss, between 0 and 1. If 0, it is ½.
	Quantile float64
	// Smoothing is h > 0 of the quantile loss, in the units of the targets. If 0, h falls
	// until it is at most a twentieth of the mean loss over τ(1 − τ). For normal errors
	// that is about a tenth of their standard deviation, and shifts the share of rows
	// below the function by less than 0.5 %.
	Smoothing float64
	// Steps and Decay are those of LogisticParams.
	Steps int
	Decay float64
}

const (
	smoothingRatio = 0.05 // of h and the mean loss over τ(1 − τ)
	sharpening     = 5    // factor by which h falls
	quantileMore   = 40   // Newton steps for the falling h
)

// Validate returns a *learners.ParameterError for the first hyper-parameter out
// of range.
func (p RobustParams) Validate() error {
	return cmp.Or(
		p.Params.checkNewton(p.Steps, p.Decay),
		learners.Require(p.Loss == learners.HuberLoss || p.Loss == learners.QuantileLoss, algorithm, "loss", p.Loss, fmt.Sprintf("%q or %q", learners.HuberLoss, learners.QuantileLoss)),
		learners.CheckQuantile(algorithm, p.Quantile),
		learners.NotNegative(algorithm, "delta", p.Delta),
		learners.NotNegative(algorithm, "smoothing", p.Smoothing),
	)
}

// Fit learns from the n rows of train, see [learners.Estimator]. An iteration is a Newton
// step, of up to Steps + 2 passes. Its errors are those of [Params.Fit].
func (p RobustParams) Fit(ctx context.Context, train data.Source, o learners.Options) (learners.Model, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if err := learners.Check(train, o); err != nil {
		return nil, err
	}
	f, err := newFit(ctx, p.Params, train, o)
	if err != nil {
		return nil, err
	}
	f.needsNear = true
	w := newNewton(f, p.Params, p.Decay, p.Steps)
	w.begin = func() { w.losses = p.losses(w, rootMean(f.sys.yy)) }
	if p.Loss == learners.QuantileLoss && p.Iterations == 0 {
		f.Iterations += quantileMore
	}
	return w.fitAll(ctx, o)
}

// losses returns the loss for targets with the root mean square size.
func (p RobustParams) losses(w *newton, size float64) losses {
	if size == 0 {
		size = 1
	}
	if p.Loss == learners.HuberLoss {
		delta := cmp.Or(p.Delta, 1)
		return huber{delta: delta, scale: min(delta, size) * size}
	}
	l := &pinball{tau: cmp.Or(p.Quantile, 0.5), h: size, scale: size}
	w.sharpen = func() bool {
		end := p.Smoothing
		if end == 0 {
			end = smoothingRatio * w.loss / float64(w.sys.c) / (l.tau * (1 - l.tau))
		}
		if l.h <= end || l.h < 1e-9*size {
			return false
		}
		l.h /= sharpening
		if p.Smoothing > 0 {
			l.h = max(l.h, p.Smoothing)
		}
		return true
	}
	return l
}

// rootMean is the root of the sum.
func rootMean(yy []float64) float64 {
	sum := 0.0
	for _, v := range yy {
		sum += v / float64(len(yy))
	}
	return math.Sqrt(sum)
}

// huber is the loss of Huber, of each output.
type huber struct{ delta, scale float64 }

func (h huber) gradient(f, y []float64, s float64, sum *lossSum) {
	for j, v := range f {
		r := math.Abs(v - y[j])
		inner := min(r, h.delta)
		sum.add(s * inner * (r - inner/2) / h.scale)
		f[j] = s * math.Copysign(inner, v-y[j])
	}
}

func (h huber) curvature(f, y []float64) float64 {
	mean := 0.0
	for j, v := range f {
		if math.Abs(v-y[j]) <= h.delta {
			mean += 1 / float64(len(f))
		}
	}
	return mean
}

func (h huber) curve(u, f, y []float64, left []int, s float64) {
	for at := range u {
		if j := left[at%len(left)]; math.Abs(f[j]-y[j]) <= h.delta {
			u[at] *= s
		} else {
			u[at] = 0
		}
	}
}

func (h huber) unit() float64 { return h.scale }

func (huber) link() learners.Link { return learners.Expected }

// pinball is the smoothed loss of quantiles, of each output.
type pinball struct{ tau, h, scale float64 }

func (p *pinball) gradient(f, y []float64, s float64, sum *lossSum) {
	for j, v := range f {
		r := y[j] - v
		sum.add(s * max(p.tau*r+p.h*softplus(-r/p.h), 0) / p.scale)
		f[j] = s * (sigmoid(-r/p.h) - p.tau)
	}
}

func (p *pinball) curvature(f, y []float64) float64 {
	mean := 0.0
	for j, v := range f {
		mean += curvatureAt((v-y[j])/p.h) / p.h / float64(len(f))
	}
	return mean
}

func (p *pinball) curve(u, f, y []float64, left []int, s float64) {
	for at := range u {
		j := left[at%len(left)]
		u[at] *= s * curvatureAt((f[j]-y[j])/p.h) / p.h
	}
}

func (p *pinball) unit() float64 { return p.scale }

func (*pinball) link() learners.Link { return learners.Expected }
