package gp

// NoiseVariance converts the regularisation λ of kernel ridge regression,
// which is per sample (K + λnI), to the noise variance of a Gaussian process
// (K + ξ²I): ξ² = λn. With it the mean (6.3) of the process is the estimator
// of kernel ridge regression (thesis, (2.30)) to the letter. n is the number
// of samples, repetitions included.
func NoiseVariance(lambda float64, n int) float64 { return lambda * float64(n) }

// Lambda is the inverse of [NoiseVariance]: λ = ξ²/n.
func Lambda(noiseVariance float64, n int) float64 { return noiseVariance / float64(n) }

// LeverageScore converts a posterior variance of the process to the ridge
// leverage score: σ²_rls = σ²/ξ². At the observed points these are the
// diagonal of K(K + ξ²I)⁻¹, and sum to the effective dimension. The thesis
// has the factor 1/λ in (7.1) and (7.3), but not in (6.4); this package has
// variances only, in the units of (6.4).
func LeverageScore(variance, noiseVariance float64) float64 { return variance / noiseVariance }
