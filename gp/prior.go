package gp

import (
	"math"
	"strings"

	"github.com/bkbtuner/bkb/gp/kernel"
)

// Prior is a distribution of one positive hyper-parameter θ.
type Prior interface {
	// LogDensity returns log p(θ), the density of θ itself and not of log θ,
	// and its derivative with respect to log θ.
	LogDensity(theta float64) (value, slope float64)
}

// LogNormal is the distribution of θ with log θ ~ N(Mu, Sigma²). Its density
// is largest at exp(Mu − Sigma²).
type LogNormal struct {
	Mu, Sigma float64
}

func (p LogNormal) LogDensity(theta float64) (value, slope float64) {
	l := math.Log(theta)
	r := (l - p.Mu) / p.Sigma
	return -l - 0.5*r*r - math.Log(p.Sigma) - 0.5*log2Pi, -1 - r/p.Sigma
}

// Gamma has density proportional to θ^(Shape−1) exp(−Rate·θ).
type Gamma struct {
	Shape, Rate float64
}

func (p Gamma) LogDensity(theta float64) (value, slope float64) {
	g, _ := math.Lgamma(p.Shape)
	return (p.Shape-1)*math.Log(theta) - p.Rate*theta + p.Shape*math.Log(p.Rate) - g,
		p.Shape - 1 - p.Rate*theta
}

// Exchangeable is the joint distribution of positive hyper-parameters θ of one kind with
//
//	log θ ~ N(Mean·1, Tau² I + (Sigma² − Tau²) 11ᵀ).
//
// Each log θ_j alone is N(Mean, Sigma²), and Tau ≤ Sigma is how far they are from each
// other. With Tau = Sigma they are independent, and as Tau → 0 they become equal.
type Exchangeable struct {
	Mean, Sigma, Tau float64
}

// LogDensity returns the density of log θ up to a constant, and adds its derivatives to slopes.
func (p *Exchangeable) LogDensity(logs, slopes []float64) float64 {
	own, common := p.Tau*p.Tau, p.Sigma*p.Sigma-p.Tau*p.Tau
	sum, square := 0.0, 0.0
	for _, l := range logs {
		z := l - p.Mean
		sum, square = sum+z, square+z*z
	}
	shared := sum * common / (own + float64(len(logs))*common) // by the matrix inversion lemma
	for i, l := range logs {
		slopes[i] -= (l - p.Mean - shared) / own
	}
	return -0.5 * (square - shared*sum) / own
}

// DimensionScaled returns the priors and limits of BoTorch for inputs in the unit cube
// [0, 1]^d and standardised targets (Hvarfner, Hellsten and Nardi, Vanilla Bayesian
// optimization performs great in high dimensions, 2024).
//
//	length scales  LogNormal(√2 + ½ log d, √3), ≥ 0.025
//	noise          LogNormal(−4, 1), ≥ 1e-4
//	factor         Gamma(2, 0.15)
//
// Parameters of other names have no prior.
func DimensionScaled(d int) FitOptions {
	scale := LogNormal{Mu: math.Sqrt2 + 0.5*math.Log(float64(max(d, 1))), Sigma: math.Sqrt(3)}
	return FitOptions{
		Prior: func(p kernel.Parameter) Prior {
			switch {
			case isLengthScale(p):
				return scale
			case isFactor(p):
				return Gamma{Shape: 2, Rate: 0.15}
			}
			return nil
		},
		NoisePrior: LogNormal{Mu: -4, Sigma: 1},
		Bounds: func(p kernel.Parameter) (lo, hi float64) {
			if isLengthScale(p) {
				return 0.025, 1e4
			}
			return 1e-4, 1e4
		},
		MinNoise: 1e-4,
	}
}

func lastName(p kernel.Parameter) string {
	return p.Name[strings.LastIndexByte(p.Name, '.')+1:]
}

func isLengthScale(p kernel.Parameter) bool {
	return strings.HasPrefix(lastName(p), "length_scale")
}

func isFactor(p kernel.Parameter) bool { return lastName(p) == "factor" }
