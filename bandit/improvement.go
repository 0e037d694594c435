package bandit

import "math"

// LogImprovement returns the logarithm of the expected improvement on best (Jones, Schonlau
// and Welch, 1998) and its derivatives by the mean and the standard deviation.
func LogImprovement(best, mean, variance float64) (v, byMean, bySD float64) {
	sd := math.Sqrt(max(variance, 1e-24))
	z := (mean - best) / sd
	var log, ratio float64 // of φ + zΦ, and Φ divided by it
	if z > -6 {
		phi, below := math.Exp(-z*z/2)/math.Sqrt(2*math.Pi), 0.5*math.Erfc(-z/math.Sqrt2)
		log, ratio = math.Log(phi+z*below), below/(phi+z*below)
	} else { // about φ/z²
		log, ratio = -z*z/2-0.5*math.Log(2*math.Pi)-2*math.Log(-z), -z-2/z
	}
	return math.Log(sd) + log, ratio / sd, 1/sd - ratio*z/sd
}

// Improvement is a [Slope] of the logarithm of the expected improvement on Best, in place of a
// mean.
type Improvement struct {
	Slope        Slope // of the prediction
	Best         float64
	byMean, bySD float64
	none         []float64
}

func (s *Improvement) Value(u []float64) (value, none float64, err error) {
	mean, sd, err := s.Slope.Value(u)
	value, s.byMean, s.bySD = LogImprovement(s.Best, mean, sd*sd)
	return value, 0, err
}

func (s *Improvement) Gradient() (value, none []float64) {
	mean, sd := s.Slope.Gradient()
	if s.none == nil {
		s.none = make([]float64, len(mean))
	}
	value = make([]float64, len(mean))
	for c := range mean {
		value[c] = s.byMean*mean[c] + s.bySD*sd[c]
	}
	return value, s.none
}
