package learners

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/bkbtuner/bkb/learners/data"
)

// Scoring says how a measure reads outputs and counts rows. The zero Scoring is for
// outputs of the squared loss and rows that count alike.
type Scoring struct {
	// Link gives probabilities from outputs.
	Link Link
	// Loss is the loss that outputs minimise.
	Loss Loss
	// Weights are the weights s_i ≥ 0 of the rows, or nil for 1 each. Integer weights are
	// rows that occur as often.
	Weights []float64
	// Quantile is τ of "pinball", or 0 for 0.5. Delta is δ of "huber" in the units of the
	// targets, or 0 for 1.
	Quantile, Delta float64
}

// measures holds the errors by their names on the command line.
var measures = map[string]func(s Scoring, outputs, targets []float64, c int) float64{
	"rmse":                Scoring.rmse,
	"mse":                 Scoring.mse,
	"mae":                 Scoring.mae,
	"relative-error":      Scoring.relativeError,
	"normalised-error":    Scoring.normalisedError,
	"1-r2":                func(s Scoring, f, y []float64, c int) float64 { return 1 - s.r2(f, y, c) },
	"class-error":         Scoring.classError,
	"1-auc":               func(s Scoring, f, y []float64, c int) float64 { return 1 - s.auc(f, y, c) },
	"1-balanced-accuracy": func(s Scoring, f, y []float64, c int) float64 { return 1 - s.balancedAccuracy(f, y, c) },
	"pinball":             Scoring.pinball,
	"huber":               Scoring.huber,
	"log-loss":            Scoring.logLoss,
	"brier":               Scoring.brier,
	"calibration-error":   Scoring.calibrationError,
}

// NeedsProbabilities reports whether the error with this name is one of probabilities.
func NeedsProbabilities(name string) bool {
	return name == "log-loss" || name == "brier" || name == "calibration-error"
}

// MeasureNames returns the names that [Scoring.Measure] knows, sorted.
func MeasureNames() []string { return slices.Sorted(maps.Keys(measures)) }

// Measure returns the error with this name, or nil if there is none. Smaller is better
// for all of them.
func (s Scoring) Measure(name string) Measure {
	of := measures[name]
	if of == nil {
		return nil
	}
	return func(outputs, targets []float64, c int) float64 { return of(s, outputs, targets, c) }
}

// weight returns the weight of a row.
func (s Scoring) weight(row int) float64 {
	if s.Weights == nil {
		return 1
	}
	return s.Weights[row]
}

// rows returns the sum of the weights of n rows.
func (s Scoring) rows(n int) float64 {
	if s.Weights == nil {
		return float64(n)
	}
	sum := 0.0
	for _, w := range s.Weights {
		sum += w
	}
	return sum
}

// mean returns the mean of loss(f, y) over rows and outputs.
func (s Scoring) mean(outputs, targets []float64, c int, loss func(f, y float64) float64) float64 {
	sum := 0.0
	for i, y := range targets {
		if w := s.weight(i / c); w > 0 {
			sum += w * loss(outputs[i], y)
		}
	}
	return sum / (s.rows(len(targets)/c) * float64(c))
}

// MSE is the mean of (f − y)² over rows and outputs.
func MSE(outputs, targets []float64, c int) float64 { return Scoring{}.mse(outputs, targets, c) }

func (s Scoring) mse(outputs, targets []float64, c int) float64 {
	return s.mean(outputs, targets, c, func(f, y float64) float64 { return (f - y) * (f - y) })
}

// RMSE is √MSE, in the units of the targets.
func RMSE(outputs, targets []float64, c int) float64 { return Scoring{}.rmse(outputs, targets, c) }

func (s Scoring) rmse(outputs, targets []float64, c int) float64 {
	most := 0.0
	for i, y := range targets {
		most = max(most, math.Abs(outputs[i]/2-y/2))
	}
	unit := unitOf(most)
	return 2 * unit * math.Sqrt(s.mean(outputs, targets, c, func(f, y float64) float64 {
		r := f/2/unit - y/2/unit
		return r * r
	}))
}

// unitOf returns the power of two from which the squares of numbers of at most this size
// neither over- nor underflow, so that it rounds nothing.
func unitOf(most float64) float64 {
	if _, e := math.Frexp(most); most > 0 && most <= math.MaxFloat64 {
		return math.Ldexp(1, max(e, -1021))
	}
	return 1
}

// mae is the mean of |f − y|.
func (s Scoring) mae(outputs, targets []float64, c int) float64 {
	return s.mean(outputs, targets, c, func(f, y float64) float64 { return math.Abs(f - y) })
}

// pinball is the mean of τr for r = y − f ≥ 0, and of (τ − 1)r otherwise. The
// τ-quantile of the targets minimises it.
func (s Scoring) pinball(outputs, targets []float64, c int) float64 {
	tau := cmp.Or(s.Quantile, 0.5)
	return s.mean(outputs, targets, c, func(f, y float64) float64 { return max(tau*(y-f), (tau-1)*(y-f)) })
}

// Below returns the share of targets below the outputs, which is about τ for a τ-quantile.
func (s Scoring) Below(outputs, targets []float64, c int) float64 {
	return s.mean(outputs, targets, c, func(f, y float64) float64 {
		if y <= f {
			return 1
		}
		return 0
	})
}

// huber is the mean of r²/2 for |r| ≤ δ, and of δ(|r| − δ/2) otherwise.
func (s Scoring) huber(outputs, targets []float64, c int) float64 {
	delta := cmp.Or(s.Delta, 1)
	return s.mean(outputs, targets, c, func(f, y float64) float64 {
		r := math.Abs(f - y)
		return min(r, delta) * (r - min(r, delta)/2)
	})
}

// relativeError is the root of the mean of ((f − y)/y)², as for the years of MillionSongs in
// Carratino (2020), Table 4.2. It needs outputs and targets in their own units, see
// data.Encoding.Decode. It is +Inf where a target is 0 and the output is not.
func (s Scoring) relativeError(outputs, targets []float64, c int) float64 {
	return math.Sqrt(s.mean(outputs, targets, c, func(f, y float64) float64 {
		if f == y {
			return 0
		}
		return (f - y) / y * ((f - y) / y)
	}))
}

// normalisedError is ‖f − y‖/‖y − ȳ‖, where ȳ is the mean of the targets of each output. The best
// constant has 1. For constant targets it is 0 if the outputs equal them, and +Inf otherwise.
func (s Scoring) normalisedError(outputs, targets []float64, c int) float64 {
	num, den := s.squares(outputs, targets, c)
	if num == 0 {
		return 0
	}
	return math.Sqrt(num / den)
}

// r2 is the coefficient of determination, 1 − ‖f − y‖²/‖y − ȳ‖². Larger is better. For
// constant targets it is 1 if the outputs equal them, and −Inf otherwise.
func (s Scoring) r2(outputs, targets []float64, c int) float64 {
	num, den := s.squares(outputs, targets, c)
	if num == 0 {
		return 1
	}
	return 1 - num/den
}

// squares returns ‖f − y‖² and ‖y − ȳ‖² in one unit.
func (s Scoring) squares(outputs, targets []float64, c int) (residual, total float64) {
	most := 0.0
	for i, y := range targets {
		most = max(most, math.Abs(y), math.Abs(outputs[i]))
	}
	unit := unitOf(most)
	mean := make([]float64, c)
	n := s.rows(len(targets) / c)
	for i, y := range targets {
		mean[i%c] += s.weight(i/c) * (y / unit) / n
	}
	for i, y := range targets {
		if w := s.weight(i / c); w > 0 {
			f, y := outputs[i]/unit, y/unit
			residual += w * (f - y) * (f - y)
			total += w * (y - mean[i%c]) * (y - mean[i%c])
		}
	}
	return residual, total
}

// ClassError is the share of rows with a wrong class, coded as in package data. For c = 1 the
// class is the sign, and 0 counts as −1. For c > 1 it is the first of the largest outputs.
func ClassError(outputs, targets []float64, c int) float64 {
	return Scoring{}.classError(outputs, targets, c)
}

func (s Scoring) classError(outputs, targets []float64, c int) float64 {
	wrong, truth := 0.0, data.Classes(targets, c)
	for i, k := range data.Classes(outputs, c) {
		if k != truth[i] {
			wrong += s.weight(i)
		}
	}
	return wrong / s.rows(len(truth))
}

// balancedAccuracy is the mean over the classes of the share of their rows whose class
// is right, see [ClassError]. Classes without rows do not count. Larger is better.
func (s Scoring) balancedAccuracy(outputs, targets []float64, c int) float64 {
	truth, guess := data.Classes(targets, c), data.Classes(outputs, c)
	rows, right := make([]float64, max(c, 2)), make([]float64, max(c, 2))
	for i, k := range truth {
		rows[k] += s.weight(i)
		if guess[i] == k {
			right[k] += s.weight(i)
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

// AUC is the area under the ROC curve. It is the share of pairs of a row of class +1 and a row of
// class −1 in which the former has the larger output. Equal outputs count half. Larger is better.
// For c > 1 it is the mean over the outputs, one against all. An output whose targets have only
// one class does not count. If no other is left, the AUC is NaN. It costs O(n log n).
func AUC(outputs, targets []float64, c int) float64 { return Scoring{}.auc(outputs, targets, c) }

func (s Scoring) auc(outputs, targets []float64, c int) float64 {
	n := len(targets) / c
	order, f := make([]int, n), make([]float64, n)
	sum, count := 0.0, 0
	for j := range c {
		for i := range n {
			order[i], f[i] = i, outputs[i*c+j]
		}
		slices.SortFunc(order, func(a, b int) int { return cmp.Compare(f[a], f[b]) })
		if auc, ok := s.rankAUC(order, f, func(i int) bool { return targets[i*c+j] > 0 }); ok {
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
func (s Scoring) rankAUC(order []int, f []float64, positive func(int) bool) (float64, bool) {
	var wins, negatives, positives float64
	for at := 0; at < len(order); {
		end, pos, all := at, 0.0, 0.0
		for ; end < len(order) && f[order[end]] == f[order[at]]; end++ {
			w := s.weight(order[end])
			if positive(order[end]) {
				pos += w
			}
			all += w
		}
		neg := all - pos
		wins += pos * (negatives + neg/2)
		negatives += neg
		positives += pos
		at = max(end, at+1) // a NaN equals nothing, not even itself
	}
	return wins / (positives * negatives), positives > 0 && negatives > 0
}

// logLoss returns the mean of −log p of the true class in nats, with p from the link. A
// probability counts as at least 1e-15.
func (s Scoring) logLoss(outputs, targets []float64, c int) float64 {
	if c == 1 && s.Link != Expected { // without rounding p to 1
		return s.mean(outputs, targets, 1, func(f, y float64) float64 {
			return math.Min(logistic(-sign(y)*f), -math.Log(1e-15))
		})
	}
	return s.meanOfProbabilities(outputs, targets, c, func(p []float64, k int) float64 { return -math.Log(math.Max(p[k], 1e-15)) })
}

// brier returns the mean of Σ_k (p_k − [k is the class])², with p from the link.
func (s Scoring) brier(outputs, targets []float64, c int) float64 {
	return s.meanOfProbabilities(outputs, targets, c, func(p []float64, k int) float64 {
		sum := 0.0
		for j, v := range p {
			if j == k {
				v--
			}
			sum += v * v
		}
		return sum
	})
}

// calibrationBins is the usual number of bins for the calibration error.
const calibrationBins = 15

// calibrationError returns the expected calibration error in 15 bins of the probability of the most
// probable class: the mean over the rows of the difference, in the row's bin, between the mean of this
// probability and the share of rows whose class is right (Guo et al. 2017).
func (s Scoring) calibrationError(outputs, targets []float64, c int) float64 {
	var difference [calibrationBins]float64
	invalid := false
	s.eachTrueProbability(outputs, targets, c, func(p []float64, k int, w float64) {
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
		difference[bin] += w * p[guess]
		if guess == k {
			difference[bin] -= w
		}
	})
	if invalid { // outputs that are not numbers
		return math.NaN()
	}
	sum := 0.0
	for _, d := range difference {
		sum += math.Abs(d)
	}
	return sum / s.rows(len(targets)/c)
}

// meanOfProbabilities returns the mean over rows of loss(p, k), with the probabilities
// of the row and its class.
func (s Scoring) meanOfProbabilities(outputs, targets []float64, c int, loss func(p []float64, k int) float64) float64 {
	sum := 0.0
	s.eachTrueProbability(outputs, targets, c, func(p []float64, k int, w float64) { sum += w * loss(p, k) })
	return sum / s.rows(len(targets)/c)
}

// eachTrueProbability calls f with the probabilities of each row, its class and its
// weight, unless that is 0.
func (s Scoring) eachTrueProbability(outputs, targets []float64, c int, f func(p []float64, k int, w float64)) {
	p, classes := s.Link.Probabilities(outputs, c), max(c, 2)
	for i, k := range data.Classes(targets, c) {
		if w := s.weight(i); w > 0 {
			f(p[i*classes:][:classes], k, w)
		}
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
