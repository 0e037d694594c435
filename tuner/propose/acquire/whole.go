package acquire

import (
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/cells"
	"github.com/bkbtuner/bkb/tuner/space"
)

// enumeratedUpTo is the largest number of configurations of a space that are all scored.
const enumeratedUpTo = 2048

// whole is all configurations of a finite space.
type whole struct {
	space   *space.Space
	asked   bool
	points  *kernel.Points[float64] // all of them, encoded, and nil if there are many
	numbers *cells.Cells            // set on first use
}

// listed returns all configurations, encoded, where they are few, else nil.
func (w *whole) listed() *kernel.Points[float64] {
	if !w.asked {
		w.asked, w.points = true, enumerated(w.space)
	}
	return w.points
}

func enumerated(sp *space.Space) *kernel.Points[float64] {
	if sp.Cardinality() > enumeratedUpTo {
		return nil
	}
	all, err := cells.Of(sp, cells.MaxPoints, nil)
	if err != nil || all.Total() > enumeratedUpTo {
		return nil
	}
	var rows []float64
	row := make([]float64, sp.Dim())
	for i := range all.Total() {
		if err := sp.Encode(all.At(i), row); err == nil {
			rows = append(rows, row...)
		} else if len(sp.Constraints()) == 0 {
			return nil
		}
	}
	return kernel.NewPoints(len(rows)/len(row), len(row), rows)
}

// mostOutside is how many configurations that break the space's constraints are passed in
// the search for one. Where few of 10¹⁰ keep them, numbering all would take hours.
const mostOutside = 20_000

// first returns a configuration for which ok is true. If there is none, or none before
// mostOutside that break the constraints, found is false. The error is a
// *[study.InvalidError] where there are too many to number.
func (w *whole) first(ok func(space.Config) bool) (c space.Config, found bool, err error) {
	if w.numbers == nil {
		if w.numbers, err = cells.Of(w.space, cells.MaxPoints, nil); err != nil {
			w.numbers = nil
			return c, false, err
		}
	}
	constrained, outside := len(w.space.Constraints()) > 0, 0
	for i := range w.numbers.Total() {
		c := w.numbers.At(i)
		if constrained && w.space.Validate(c) != nil {
			if outside++; outside == mostOutside {
				break
			}
			continue
		}
		if ok(c) {
			return c, true, nil
		}
	}
	return c, false, nil
}
