package theory

import "math"

// Schedule is one of the four schedules of Corollary 6 with which SGD with random
// features reaches the optimal rate. They differ in the mini-batch b, the step γ and
// the passes over the data. γ·T = n^{1/(2r+α)} and M are common to all.
type Schedule string

// These are the schedules. With (r, α) = (½, 1) they are those of Corollary 5.
const (
	// SmallSteps is (c2.1) with b = 1, γ = 1/n and n^{1/(2r+α)} passes.
	SmallSteps Schedule = "small-steps"
	// SinglePoints is (c2.2) with b = 1, γ = n^{−2r/(2r+α)} and n^{(1−α)/(2r+α)} passes.
	SinglePoints Schedule = "single-points"
	// MiniBatches is (c2.3) with b = n^{2r/(2r+α)}, γ = 1 and n^{(1−α)/(2r+α)} passes.
	// It is the default of package sgdrf.
	MiniBatches Schedule = "mini-batches"
	// FullBatch is (c2.4) with b = n, γ = 1 and n^{1/(2r+α)} passes.
	FullBatch Schedule = "full-batch"
)

// FeaturesPerRate is the constant of M in [Schedule.Settings], with which M = 4√n in
// the worst case. Carratino, Rudi and Rosasco (2018) see no gain in M beyond √n. The
// rest is for problems that are not quite as smooth.
const FeaturesPerRate = 4

// SGD holds the hyper-parameters of SGD with random features.
type SGD struct {
	BatchSize  int     // b ∈ [1, n]
	StepSize   float64 // γ, in units of κ⁻²
	Iterations int     // T
	Passes     float64 // bT/n
	Features   int     // M ∈ [1, n]
}

// Settings returns b, γ, T and M for n ≥ 1 observations.
//
// M = 4n^{(1+α(2r−1))/(2r+α)}, at most n, which is (3.14) without the logarithm in its Õ.
//
// The sources are Corollaries 5 and 6.
func (s Schedule) Settings(n int, g Regularity) (SGD, error) {
	if err := checkProblem(n, g); err != nil {
		return SGD{}, err
	}
	N, e := float64(n), 1/(2*g.R+g.Alpha)
	b, step, t := 1.0, 1.0, math.Pow(N, e)
	switch s {
	case SmallSteps:
		step, t = 1/N, math.Pow(N, 1+e)
	case SinglePoints:
		step, t = math.Pow(N, -2*g.R*e), math.Pow(N, (2*g.R+1)*e)
	case MiniBatches:
		b = math.Pow(N, 2*g.R*e)
	case FullBatch:
		b = N
	default:
		return SGD{}, invalid("schedule", s, "small-steps, single-points, mini-batches or full-batch")
	}
	out := SGD{
		BatchSize:  ceil(b, n),
		StepSize:   step,
		Iterations: ceil(t, math.MaxInt),
		Features:   ceil(FeaturesPerRate*math.Pow(N, (1+g.Alpha*(2*g.R-1))*e), n),
	}
	out.Passes = float64(out.BatchSize) * float64(out.Iterations) / N
	return out, nil
}
