package acquire

import (
	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/cells"
	"github.com/bkbtuner/bkb/tuner/space"
)

// enumeratedUpTo is the largest number of configurations of a space that are all scored.
const enumeratedUpTo = 2048

// finite is all configurations of a finite space.
type finite struct {
	space   *space.Space
	asked   bool
	points  *kernel.Points[float64] // all of them, encoded, and nil if there are many
	numbers *cells.Cells            // set on first use
}

// listed returns all configurations, encoded, where they are few, else nil.
func (f *finite) listed() *kernel.Points[float64] {
	if !f.asked {
		f.asked, f.points = true, enumerated(f.space)
	}
	return f.points
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
func (f *finite) first(ok func(space.Config) bool) (c space.Config, found bool, err error) {
	if f.numbers == nil {
		if f.numbers, err = cells.Of(f.space, cells.MaxPoints, nil); err != nil {
			f.numbers = nil
			return c, false, err
		}
	}
	constrained, outside := len(f.space.Constraints()) > 0, 0
	for i := range f.numbers.Total() {
		c := f.numbers.At(i)
		if constrained && f.space.Validate(c) != nil {
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
