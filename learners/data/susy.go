package data

import (
	"math"

	"github.com/bkbtuner/bkb/internal/stream"
)

// SUSYLike is a problem of two classes in the manner of the SUSY data of particle physics.
// It has 8 measured quantities of a collision and 10 derived ones.
//
//	pt1 ~ Γ(2,1)   pt2 = pt1·Beta(2,2)        transverse momenta
//	η1 ~ N(0,1)    η2 = ½η1 + 0.9·N(0,1)      pseudorapidities
//	φ1 ~ U(−π,π)   φ2 = φ1 + vonMises(π,1)    angles
//	met ~ Γ(3/2,1) φm ~ U(−π,π)               missing energy
//
//	m_ll = √(2·pt1·pt2·(cosh(clip(η1−η2, ±4)) − cos Δφ)),  Δφ = φ1−φ2
//	m_T  = √(2·pt1·met·(1 − cos(φ1−φm)))
//
// The features are pt1, η1, φ1, pt2, η2, φ2, met, φm, cos Δφ, m_ll, m_T, met·cos(φm−φ1),
// met/(√(pt1+pt2)+0.1), log(1+pt1+pt2), min(m_ll, m_T), cos(φm−φ1), cos(φm−φ2), |η1−η2|, in
// this order. Each is reduced by its mean and divided by its standard deviation. The class
// is +1 with probability sigmoid(1.6·s),
//
//	s = 1.6·tanh(met−1.5) + 1.2·tanh(0.6(m_T−2)) + 0.8·tanh(½(m_ll−2.5))
//	  + 0.7·cos Δφ·tanh(pt1−2) − 0.25,
//
// else −1.
type SUSYLike struct{ Seed uint64 }

// Dim returns 18.
func (SUSYLike) Dim() int { return 18 }

// Sampler returns a sampler whose targets are ±1.
func (p SUSYLike) Sampler() Sampler { return &susySampler{newRNG(p.Seed, "susy-like")} }

type susySampler struct{ g *rng }

func (s *susySampler) At(i uint64, x []float64) float64 {
	y, _ := s.sample(i, x)
	return y
}

// sample returns the class of row i and the probability that it is +1. It sets x to the inputs.
func (s *susySampler) sample(i uint64, x []float64) (y, probability float64) {
	r := s.g.row(i)
	pt1 := stream.Gamma(2, r)
	pt2 := pt1 * beta(r, 2, 2)
	eta1 := r.NormFloat64()
	eta2 := 0.5*eta1 + 0.9*r.NormFloat64()
	phi1 := math.Pi * (2*r.Float64() - 1)
	phi2 := vonMises(r, phi1+math.Pi, 1)
	met := stream.Gamma(1.5, r)
	phiM := math.Pi * (2*r.Float64() - 1)

	cosPhi := math.Cos(phi1 - phi2)
	deltaEta := max(-4, min(4, eta1-eta2))
	mLL := math.Sqrt(2 * pt1 * pt2 * (math.Cosh(deltaEta) - cosPhi))
	mT := math.Sqrt(2 * pt1 * met * (1 - math.Cos(phi1-phiM)))
	raw := [18]float64{
		pt1, eta1, phi1, pt2, eta2, phi2, met, phiM,
		cosPhi, mLL, mT, met * math.Cos(phiM-phi1), met / (math.Sqrt(pt1+pt2) + 0.1),
		math.Log1p(pt1 + pt2), min(mLL, mT), math.Cos(phiM - phi1), math.Cos(phiM - phi2), math.Abs(eta1 - eta2),
	}
	for c, v := range raw {
		x[c] = (v - susyMean[c]) / susyScale[c]
	}
	score := 1.6*math.Tanh(met-1.5) + 1.2*math.Tanh(0.6*(mT-2)) + 0.8*math.Tanh(0.5*(mLL-2.5)) +
		0.7*cosPhi*math.Tanh(pt1-2) - 0.25
	probability = 1 / (1 + math.Exp(-1.6*score))
	if r.Float64() < probability {
		return 1, probability
	}
	return -1, probability
}

// These are the means and standard deviations of the features of SUSYLike before scaling. They
// are closed forms where possible, otherwise means over 3 million rows, accurate to 0.002.
var (
	susyMean = [18]float64{
		2, 0, 0, 1, 0, 0, 1.5, 0,
		-0.4464, 2.7118, 1.9086, 0, 1.0041, 1.2525, 1.4940, 0, 0, 0.8215,
	}
	susyScale = [18]float64{
		1.4142, 1, 1.8138, 0.8944, 1.0296, 1.8138, 1.2247, 1.8138,
		0.5954, 2.3443, 1.5321, 1.3687, 1.0040, 0.5133, 1.2726, 0.7071, 0.7071, 0.6206,
	}
)
