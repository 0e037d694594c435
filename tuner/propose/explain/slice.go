package explain

import (
	"fmt"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/tuner/propose/model"
	"github.com/bkbtuner/bkb/tuner/space"
	"github.com/bkbtuner/bkb/tuner/surrogate"
)

// Along returns the slice through c along a parameter that is active in it, at up to a
// number of points. A parameter of few values has all of them.
func Along(f *model.Frozen, sp *space.Space, c space.Config, parameter string, points int) (surrogate.Slice, error) {
	out := surrogate.Slice{Parameter: parameter}
	sp = sp.Free() // the slice goes on where it breaks the constraints
	i, ok := sp.Coordinate(parameter)
	if !ok {
		return out, fmt.Errorf("parameter %q does not vary", parameter)
	}
	from := make([]float64, sp.Dim())
	if err := sp.Encode(c, from); err != nil {
		return out, err
	}
	type point struct {
		at    float64
		value space.Value
		x     []float64
	}
	var all []point
	for _, u := range coordinates(sp.Axes()[i].Levels, points) {
		x := slices.Clone(from)
		x[i] = u
		config, err := sp.Decode(x)
		if err == nil {
			err = sp.Encode(config, x)
		}
		if err != nil {
			return out, err
		}
		if n := len(all); n == 0 || x[i] != all[n-1].at { // not the same value
			v, _ := config.Get(parameter)
			all = append(all, point{x[i], v, x})
		}
	}
	var rows []float64
	for k := range min(points, len(all)) {
		p := all[k]
		if len(all) > points { // with the first and the last
			p = all[k*(len(all)-1)/(points-1)]
		}
		out.At, out.Values, rows = append(out.At, p.at), append(out.Values, p.value), append(rows, p.x...)
	}
	out.Predictions = f.At(kernel.NewPoints(len(out.At), sp.Dim(), rows))
	return out, nil
}

// coordinates returns a grid of [0, 1]. If there are few values it is fine enough to meet each.
func coordinates(levels uint64, points int) []float64 {
	n := points
	if levels > 0 && levels <= uint64(points) {
		n = 1 + 64*int(levels)
	}
	out := make([]float64, n)
	for k := range out {
		out[k] = float64(k) / float64(n-1)
	}
	return out
}
