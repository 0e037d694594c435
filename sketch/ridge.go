package sketch

// This is the one place where the two conventions of regularisation meet: the
// per-sample λ of this package and of the learners, K + λnI, and the noise
// variance ξ² of Gaussian processes, K + ξ²I.

// Ridge returns λn, what a per-sample λ adds to the diagonal of K for n
// observations, repetitions included. It is the noise variance ξ² of a Gaussian
// process: the mean (6.3) of the process then is the estimator of kernel ridge
// regression, thesis (2.30).
func Ridge(lambda float64, n int) float64 { return lambda * float64(n) }

// LambdaOfNoise returns the per-sample λ = ξ²/n of a noise variance ξ², for
// n ≥ 1 observations.
func LambdaOfNoise(noiseVariance float64, n int) float64 {
	return noiseVariance / float64(n)
}

// ScoreOfVariance returns the leverage score σ²/ξ² of a posterior variance
// σ² = k(x, x) − k(x)ᵀ(K + ξ²I)⁻¹k(x): with ξ² = λn it is ℓ(i, λ) at the row i
// of the data, and sums to the effective dimension there. The thesis writes σ²
// for the variance in (6.4), and for the score in (7.1) and (7.3).
func ScoreOfVariance(variance, noiseVariance float64) float64 {
	return variance / noiseVariance
}
