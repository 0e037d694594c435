package acquire

import "slices"

// The best trial is repeated once from firstRepeat results on, and once more from
// secondRepeat on, unless there are as many repetitions anyway. A repetition that failed or
// was pruned counts, because another one would end in the same way.
const (
	firstRepeat  = 20
	secondRepeat = 100
)

// repeated returns the best measured trial if it is worth repeating, else nil. Noise and
// effects that the model does not explain look the same to it, until a configuration is
// measured twice. The recommendation depends on the difference.
func (a *acquisition) repeated() []float64 {
	r, wanted := a.engine.Results, 0
	for _, n := range []int{firstRepeat, secondRepeat} {
		if len(r.List) >= n {
			wanted++
		}
	}
	if !a.options.Repeat || len(a.spec.Objectives) > 1 || a.pulls() ||
		max(a.engine.Repeated(), r.Again) >= wanted || a.engine.Event.Surfaces[0].Noise < little || len(a.eliteOf(a.engine)) == 0 {
		return nil
	}
	x := r.List[a.elite.ranked[0]].X
	if slices.ContainsFunc(a.running(), func(y []float64) bool { return slices.Equal(x, y) }) {
		return nil // one at a time
	}
	return slices.Clone(x)
}
