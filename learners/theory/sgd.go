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
	// SinglePoints is (c2.2) with b = 1, γ = n^{−2r/(2r+α)} and n^{(1−α)/(2r+α)}
	// passes.
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
// M = 4n^{(1+α(2r−1))/(2r+α)}, at most n, which is (3.14) without the logarithm in its
// Õ. The conditions of Theorem 3 on γ and M, with their constants, are [MaxStep] and
// [MinFeatures]. They are far from necessary, and γ = 1 does not meet them.
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

// MaxStep returns the largest γ of (3.16), in units of κ⁻², for T iterations with steps
// γt^−θ, θ ∈ [0, 1). It holds with probability 1 − 9δ.
//
//	n/(9T^{1−θ} log(n/δ))  ∧  (θ ∧ (1−θ))/7, or 1/(8(1 + log T)) for θ = 0.
//
// It needs n ≥ 32 log²(2/δ). The source is Theorem 3, of which Theorems 1 and 2 are the
// case θ = 0.
func MaxStep(n, iterations int, theta, delta float64) (float64, error) {
	if err := checkTheorem3(iterations, theta, delta); err != nil {
		return 0, err
	}
	if log := math.Log(2 / delta); float64(n) < 32*log*log {
		return 0, invalid("n", n, "at least 32 log²(2/δ) (Theorem 3)")
	}
	T := float64(iterations)
	decay := 1 / (8 * (1 + math.Log(T)))
	if theta > 0 {
		decay = min(theta, 1-theta) / 7
	}
	return min(float64(n)/(9*math.Pow(T, 1-theta)*math.Log(float64(n)/delta)), decay), nil
}

// MinFeatures returns the least M of (3.17) for T iterations with steps γt^−θ, γ > 0 in
// units of κ⁻². It holds with probability 1 − 9δ.
//
//	M ≥ (4 + 18γT^{1−θ}) log(12γT^{1−θ}/δ).
//
// The source is Theorem 3.
func MinFeatures(step float64, iterations int, theta, delta float64) (int, error) {
	if err := checkTheorem3(iterations, theta, delta); err != nil {
		return 0, err
	}
	if err := checkPositive("step", step); err != nil {
		return 0, err
	}
	s := step * math.Pow(float64(iterations), 1-theta)
	return ceil((4+18*s)*math.Log(12*s/delta), math.MaxInt), nil
}

func checkTheorem3(iterations int, theta, delta float64) error {
	if iterations < 1 {
		return invalid("iterations", iterations, "at least 1")
	}
	if !(theta >= 0 && theta < 1) {
		return invalid("theta", theta, "in [0, 1) (Theorem 3)")
	}
	return checkDelta(delta)
}
