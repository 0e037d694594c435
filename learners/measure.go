package learners

import (
	"maps"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/learners/data"
)

// measures holds the errors by their names on the command line.
var measures = map[string]Measure{
	"rmse":             RMSE,
	"mse":              MSE,
	"mae":              MAE,
	"relative-error":   RelativeError,
	"normalised-error": NormalisedError,
	"1-r2":             func(f, y []float64, c int) float64 { return 1 - R2(f, y, c) },
	"class-error":      ClassError,
	"1-auc":            func(f, y []float64, c int) float64 { return 1 - AUC(f, y, c) },

	"1-balanced-accuracy": func(f, y []float64, c int) float64 { return 1 - BalancedAccuracy(f, y, c) },
}

// probabilityMeasures holds the errors of probabilities.
var probabilityMeasures = map[string]func(Link) Measure{
	"log-loss":          LogLoss,
	"brier":             Brier,
	"calibration-error": CalibrationError,
}

// NeedsProbabilities reports whether the error with this name is one of probabilities.
func NeedsProbabilities(name string) bool { return probabilityMeasures[name] != nil }

// MeasureNames returns the names that MeasureNamed knows, sorted.
func MeasureNames() []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(measures)), maps.Keys(probabilityMeasures))
	slices.Sort(names)
	return names
}

// MeasureNamed returns the error with this name, or nil if there is none. Smaller is
// better for all of them. Probabilities come from the link.
func MeasureNamed(name string, l Link) Measure {
	if of := probabilityMeasures[name]; of != nil {
		return of(l)
	}
	return measures[name]
}

// MSE is the mean of (f − y)² over rows and outputs.
func MSE(outputs, targets []float64, _ int) float64 {
	s := 0.0
	for i, y := range targets {
		s += (outputs[i] - y) * (outputs[i] - y)
	}
	return s / float64(len(targets))
}

// RMSE is √MSE, in the units of the targets.
func RMSE(outputs, targets []float64, c int) float64 { return math.Sqrt(MSE(outputs, targets, c)) }

// MAE is the mean of |f − y|.
func MAE(outputs, targets []float64, _ int) float64 {
	s := 0.0
	for i, y := range targets {
		s += math.Abs(outputs[i] - y)
	}
	return s / float64(len(targets))
}

// RelativeError is the root of the mean of ((f − y)/y)², as for the years of
// MillionSongs in Carratino (2020), Table 4.2. It needs outputs and targets in their
// own units, see data.Encoding.Decode. It is +Inf where a target is 0 and the output is
// not.
func RelativeError(outputs, targets []float64, _ int) float64 {
	s := 0.0
	for i, y := range targets {
		if e := outputs[i] - y; e != 0 {
			s += (e / y) * (e / y)
		}
	}
	return math.Sqrt(s / float64(len(targets)))
}

// NormalisedError is ‖f − y‖/‖y − ȳ‖, where ȳ is the mean of the targets of each
// output. The best constant has 1. For constant targets it is 0 if the outputs equal
// them, and +Inf otherwise.
func NormalisedError(outputs, targets []float64, c int) float64 {
	num, den := squares(outputs, targets, c)
	if num == 0 {
		return 0
	}
	return math.Sqrt(num / den)
}

// R2 is the coefficient of determination, 1 − ‖f − y‖²/‖y − ȳ‖². Larger is better. For
// constant targets it is 1 if the outputs equal them, and −Inf otherwise.
func R2(outputs, targets []float64, c int) float64 {
	num, den := squares(outputs, targets, c)
	if num == 0 {
		return 1
	}
	return 1 - num/den
}

// squares returns ‖f − y‖² and ‖y − ȳ‖².
func squares(outputs, targets []float64, c int) (residual, total float64) {
	mean := make([]float64, c)
	n := float64(len(targets) / c)
	for i, y := range targets {
		mean[i%c] += y / n
	}
	for i, y := range targets {
		residual += (outputs[i] - y) * (outputs[i] - y)
		total += (y - mean[i%c]) * (y - mean[i%c])
	}
	return residual, total
}

// ClassError is the share of rows with a wrong class, coded as in package data. For
// c = 1 the class is the sign, and 0 counts as −1. For c > 1 it is the first of the
// largest outputs.
func ClassError(outputs, targets []float64, c int) float64 {
	wrong, truth := 0, data.Classes(targets, c)
	for i, k := range data.Classes(outputs, c) {
		if k != truth[i] {
			wrong++
		}
	}
	return float64(wrong) / float64(len(truth))
}

// BalancedAccuracy is the mean over the classes of the share of their rows whose class
// is right, see [ClassError]. Classes without rows do not count. Larger is better.
func BalancedAccuracy(outputs, targets []float64, c int) float64 {
	truth, guess := data.Classes(targets, c), data.Classes(outputs, c)
	rows, right := make([]float64, max(c, 2)), make([]float64, max(c, 2))
	for i, k := range truth {
		rows[k]++
		if guess[i] == k {
			right[k]++
		}
	}
	sum, classes := 0.0, 0.0
	for k, n := range rows {
		if n > 0 {
			sum += right[k] / n
			classes++
		}
	}
	return sum / classes
}

// AUC is the area under the ROC curve. It is the share of pairs of a row of class +1
// and a row of class −1 in which the former has the larger output. Equal outputs count
// half. Larger is better. For c > 1 it is the mean over the outputs, one against all.
// An output whose targets have only one class does not count. If no other is left, the
// AUC is NaN. It costs O(n log n).
func AUC(outputs, targets []float64, c int) float64 {
	n := len(targets) / c
	order, f := make([]int, n), make([]float64, n)
	sum, count := 0.0, 0
	for j := range c {
		for i := range n {
			order[i], f[i] = i, outputs[i*c+j]
		}
		slices.SortFunc(order, func(a, b int) int {
			switch {
			case f[a] < f[b]:
				return -1
			case f[a] > f[b]:
				return 1
			}
			return 0
		})
		if auc, ok := rankAUC(order, f, func(i int) bool { return targets[i*c+j] > 0 }); ok {
			sum += auc
			count++
		}
	}
	if count == 0 {
		return math.NaN()
	}
	return sum / float64(count)
}

// rankAUC is the statistic of Mann and Whitney, of rows in increasing order of f.
func rankAUC(order []int, f []float64, positive func(int) bool) (float64, bool) {
	var wins, negatives, positives float64
	for at := 0; at < len(order); {
		end, pos := at, 0.0
		for ; end < len(order) && f[order[end]] == f[order[at]]; end++ {
			if positive(order[end]) {
				pos++
			}
		}
		neg := float64(end-at) - pos
		wins += pos * (negatives + neg/2)
		negatives += neg
		positives += pos
		at = max(end, at+1) // a NaN equals nothing, not even itself
	}
	return wins / (positives * negatives), positives > 0 && negatives > 0
}

// LogLoss returns the mean of −log p of the true class in nats, with p from the link. A
// probability counts as at least 1e-15.
func LogLoss(l Link) Measure {
	return func(outputs, targets []float64, c int) float64 {
		if c == 1 && l != Expected { // without rounding p to 1
			s := 0.0
			for i, y := range targets {
				s += math.Min(logistic(-sign(y)*outputs[i]), -math.Log(1e-15))
			}
			return s / float64(len(targets))
		}
		s := 0.0
		eachTrueProbability(l, outputs, targets, c, func(p []float64, k int) { s -= math.Log(math.Max(p[k], 1e-15)) })
		return s / float64(len(targets)/c)
	}
}

// Brier returns the mean of Σ_k (p_k − [k is the class])², with p from the link.
func Brier(l Link) Measure {
	return func(outputs, targets []float64, c int) float64 {
		s := 0.0
		eachTrueProbability(l, outputs, targets, c, func(p []float64, k int) {
			for j, v := range p {
				if j == k {
					v--
				}
				s += v * v
			}
		})
		return s / float64(len(targets)/c)
	}
}

// calibrationBins is the usual number of bins for the calibration error.
const calibrationBins = 15

// CalibrationError returns the expected calibration error, with p from the link. Rows
// are put into 15 bins by the probability of their most probable class. It is the mean
// over the rows of the difference, in the row's bin, between the mean of this
// probability and the share of rows whose class is right (Naeini, Cooper and Hauskrecht
// 2015, and Guo et al. 2017 for several classes).
func CalibrationError(l Link) Measure {
	return func(outputs, targets []float64, c int) float64 {
		var difference [calibrationBins]float64
		invalid := false
		eachTrueProbability(l, outputs, targets, c, func(p []float64, k int) {
			guess := 0
			for j, v := range p {
				if v > p[guess] {
					guess = j
				}
			}
			if invalid = invalid || !(p[guess] >= 0 && p[guess] <= 1); invalid {
				return
			}
			bin := min(int(p[guess]*calibrationBins), calibrationBins-1)
			difference[bin] += p[guess]
			if guess == k {
				difference[bin]--
			}
		})
		if invalid { // outputs that are not numbers
			return math.NaN()
		}
		s := 0.0
		for _, d := range difference {
			s += math.Abs(d)
		}
		return s / float64(len(targets)/c)
	}
}

// eachTrueProbability calls f with the probabilities of each row and its class.
func eachTrueProbability(l Link, outputs, targets []float64, c int, f func(p []float64, k int)) {
	p, classes := l.Probabilities(outputs, c), max(c, 2)
	for i, k := range data.Classes(targets, c) {
		f(p[i*classes:][:classes], k)
	}
}

// logistic is log(1 + exp(t)).
func logistic(t float64) float64 {
	if t > 0 {
		return t + math.Log1p(math.Exp(-t))
	}
	return math.Log1p(math.Exp(t))
}

func sign(y float64) float64 {
	if y > 0 {
		return 1
	}
	return -1
}
