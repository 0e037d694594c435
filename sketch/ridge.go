package sketch

// The two conventions of regularisation meet only here. This package and the learners have the
// per-sample λ, K + λnI. Gaussian processes have the noise variance ξ², K + ξ²I.

// Ridge returns λn, the addition of a per-sample λ to the diagonal of K for n observations,
// repetitions included. It is the noise variance ξ² of a Gaussian process. The mean (6.3) of the
// process is then the estimator (2.30) of kernel ridge regression in Carratino (2020).
func Ridge(lambda float64, n int) float64 { return lambda * float64(n) }

// LambdaOfNoise returns the per-sample λ = ξ²/n of a noise variance ξ², for n ≥ 1 observations.
func LambdaOfNoise(noiseVariance float64, n int) float64 {
	return noiseVariance / float64(n)
}

// ScoreOfVariance returns the leverage score σ²/ξ² of a posterior variance σ² = k(x,
// x) − k(x)ᵀ(K + ξ²I)⁻¹k(x). With ξ² = λn it is ℓ(i, λ) at row i of the data, and the
// sum over the rows is the effective dimension. Carratino (2020) writes σ² for the
// variance in (6.4), and for the score in (7.1) and (7.3).
func ScoreOfVariance(variance, noiseVariance float64) float64 {
	return variance / noiseVariance
}
