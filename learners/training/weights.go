package training

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/learners/data"
)

// Balanced as class weights gives all classes the same total weight.
const Balanced = "balanced"

// ClassWeights returns the weights of rows times those of their classes. text is
// Balanced, or weights of classes by name such as "yes=3,no=1", where classes that are
// not named have 1. weights are those of the rows of src, or nil. An empty text returns
// weights. It reads the targets.
func ClassWeights(ctx context.Context, text string, e *data.Encoding, src data.Source, weights []float64) ([]float64, error) {
	if text == "" {
		return weights, nil
	}
	if e.Task != data.Classification {
		return nil, fmt.Errorf("%q: class weights need a target of classes, and this target is a number", text)
	}
	of, err := parseClassWeights(text, e.Classes)
	if err != nil {
		return nil, err
	}
	y, err := data.Targets(ctx, src)
	if err != nil {
		return nil, err
	}
	out := slices.Clone(weights)
	if out == nil {
		out = slices.Repeat([]float64{1}, src.Len())
	}
	classes := data.Classes(y, src.Outputs())
	if of == nil {
		of = make([]float64, len(e.Classes))
		for i, k := range classes {
			of[k] += out[i]
		}
		for k, sum := range of {
			if sum > 0 {
				of[k] = 1 / sum // only ratios matter
			}
		}
	}
	for i, k := range classes {
		out[i] *= of[k]
	}
	return out, nil
}

// parseClassWeights returns the weights of the classes, or nil for Balanced.
func parseClassWeights(text string, classes []string) ([]float64, error) {
	if text == Balanced {
		return nil, nil
	}
	out := slices.Repeat([]float64{1}, len(classes))
	seen := make([]bool, len(classes))
	for part := range strings.SplitSeq(text, ",") {
		at := strings.LastIndex(part, "=")
		if at < 0 {
			return nil, fmt.Errorf("%q: must be %s, or weights such as %s=2 with commas between", part, Balanced, classes[0])
		}
		name := strings.TrimSpace(part[:at])
		k := slices.Index(classes, name)
		switch {
		case k < 0:
			return nil, fmt.Errorf("%q: there is no class %q; the classes are %s", part, name, strings.Join(classes, ", "))
		case seen[k]:
			return nil, fmt.Errorf("%q: the class %q has a weight already; name each class once", part, name)
		}
		w, err := strconv.ParseFloat(strings.TrimSpace(part[at+1:]), 64)
		if err != nil || !(w >= 0) || math.IsInf(w, 0) {
			return nil, fmt.Errorf("%q: the weight of a class must be a finite number ≥ 0", part)
		}
		seen[k], out[k] = true, w
	}
	return out, nil
}
