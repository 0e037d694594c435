package learners

import "math"

// Link says what the outputs of a classifier mean.
type Link string

// These are the links. Classes are coded ±1, as in package data.
const (
	// Expected means that an output estimates E[y | x] = 2p − 1, as with the squared
	// loss. Then p = (f + 1)/2, cut to [0, 1].
	Expected Link = ""
	// Logistic means p = 1/(1 + exp(−f)), as with the logistic loss.
	Logistic Link = "logistic"
	// Softmax means p_k = exp(f_k)/Σ_j exp(f_j) for c > 1 outputs, as with the
	// multinomial loss. One output is as with Logistic.
	Softmax Link = "softmax"
)

// Linked is a Model that says what its outputs mean.
type Linked interface {
	Model
	Link() Link
}

// LinkOf returns the link of a model, Expected if it states none.
func LinkOf(m Model) Link {
	if l, ok := m.(Linked); ok {
		return l.Link()
	}
	return Expected
}

func (l Link) valid() bool { return l == Expected || l == Logistic || l == Softmax }

// Probabilities returns the probabilities of the classes from outputs n×c. For c = 1 they are
// n×2, of the classes −1 and +1. Otherwise they are n×c. One-vs-all outputs are probabilities of
// one class each. They are divided by their sum, or become 1/c each if the sum is 0.
func (l Link) Probabilities(outputs []float64, c int) []float64 {
	if c == 1 {
		p := make([]float64, 2*len(outputs))
		for i, f := range outputs {
			p[2*i], p[2*i+1] = l.probability(-f), l.probability(f)
		}
		return p
	}
	p := make([]float64, len(outputs))
	for i := 0; i+c <= len(p); i += c {
		if l == Softmax {
			copy(p[i:], outputs[i:i+c])
			ToSoftmax(p[i : i+c])
			continue
		}
		row, sum := p[i:i+c], 0.0
		for j, f := range outputs[i : i+c] {
			row[j] = l.probability(f)
			sum += row[j]
		}
		for j := range row {
			if sum > 0 {
				row[j] /= sum
			} else {
				row[j] = 1 / float64(c)
			}
		}
	}
	return p
}

// ToSoftmax replaces f by exp(f_k)/Σ_j exp(f_j) and returns log Σ_j exp(f_j).
func ToSoftmax(f []float64) (logSum float64) {
	largest, sum := math.Inf(-1), 0.0
	for _, v := range f {
		largest = max(largest, v)
	}
	for k, v := range f {
		f[k] = math.Exp(v - largest)
		sum += f[k]
	}
	for k := range f {
		f[k] /= sum
	}
	return largest + math.Log(sum)
}

// probability returns the probability of the class +1.
func (l Link) probability(f float64) float64 {
	if l != Expected {
		return 1 / (1 + math.Exp(-f))
	}
	return min(max((f+1)/2, 0), 1)
}
