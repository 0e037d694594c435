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
// It uses the Newton steps of LogisticParams. The loss of Huber has a generalised second
// derivative, 1 for |r| ≤ δ and 0 beyond. That of quantiles has none, and is replaced by
//
//	ℓ_h(r) = τr + h log(1 + exp(−r/h)),   ℓ ≤ ℓ_h ≤ ℓ + h log 2.
//
// Like the logistic loss it is generalised self-concordant, |ℓ‴| ≤ ℓ″/h, as Newton's
// method needs (Marteau-Ferey, Bach and Rudi, 2019). h starts at the root mean square of
// the targets. It falls by a factor of 5 whenever a step at μ = λ leaves a small gradient.
type RobustParams struct {
	// Params has the fields that the losses share, as in LogisticParams. There are 40 steps more
	// for quantiles, and Tolerance is relative to the root of the loss of f = 0.
	Params
	// Loss is learners.HuberLoss or learners.QuantileLoss.
	Loss learners.Loss
	// Delta is δ > 0 of the Huber loss, in the units of the targets. If 0, it is 1.
	Delta float64
	// Quantile is τ of the quantile loss, between 0 and 1. If 0, it is ½.
	Quantile float64
	// Smoothing is h > 0 of the quantile loss, in the units of the targets. If 0, h falls
	// until it is at most a twentieth of the mean loss over τ(1 − τ), which shifts the share of
	// rows below the function by less than 0.5 %.
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
	w, err := p.newNewton(ctx, p.Decay, p.Steps, train, o)
	if err != nil {
		return nil, err
	}
	w.needsNear = true
	w.begin = func() { w.losses = p.losses(w, rootMean(w.sys.yy)) }
	if p.Loss == learners.QuantileLoss && p.Iterations == 0 {
		w.Iterations += quantileMore
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
		return &each{
			value: func(f, y float64) float64 {
				r := math.Abs(f - y)
				inner := min(r, delta)
				return inner * (r - inner/2)
			},
			slope: func(f, y float64) float64 { return min(max(f-y, -delta), delta) },
			curvatureOf: func(f, y float64) float64 {
				if math.Abs(f-y) <= delta {
					return 1
				}
				return 0
			},
			scale: min(delta, size) * size,
		}
	}
	tau, h := cmp.Or(p.Quantile, 0.5), size
	w.sharpen = func() bool {
		end := p.Smoothing
		if end == 0 {
			end = smoothingRatio * w.loss / float64(w.sys.c) / (tau * (1 - tau))
		}
		if h <= end || h < 1e-9*size {
			return false
		}
		h = max(h/sharpening, p.Smoothing)
		return true
	}
	return &each{
		value:       func(f, y float64) float64 { return max(tau*(y-f)+h*softplus((f-y)/h), 0) },
		slope:       func(f, y float64) float64 { return sigmoid((f-y)/h) - tau },
		curvatureOf: func(f, y float64) float64 { return curvatureAt((f-y)/h) / h },
		scale:       size,
	}
}

// rootMean is the root of the sum.
func rootMean(yy []float64) float64 {
	sum := 0.0
	for _, v := range yy {
		sum += v / float64(len(yy))
	}
	return math.Sqrt(sum)
}
