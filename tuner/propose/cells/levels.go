package cells

import "github.com/bkbtuner/bkb/tuner/space"

// levels are the values that a grid gives one parameter, in order. They are listed, or
// computed for an int or stepped float with too many to list.
type levels struct {
	n      uint64
	listed []space.Value
	places map[space.Value]uint64 // in listed
	// If not listed, value i of an int is low + i·step. For a float it is the value of the
	// i-th of n equal cells of the parameter's own space.
	isInt     bool
	low, step uint64
	own       *space.Space
}

// newLevels returns the values of p, thinned to at most count if that is not 0.
func newLevels(p space.Parameter, count, points int) (levels, error) {
	p.When = nil
	own, err := space.New(p)
	if err != nil {
		return levels{}, err
	}
	if own.Dim() == 0 {
		return list(p.Values), nil
	}
	axis := own.Axes()[0]
	if axis.Levels == 0 && count == 0 {
		count = points
	}
	if count > 0 {
		return thinned(own, count), nil
	}
	switch p.Type {
	case space.TypeOrdinal, space.TypeCategorical:
		return list(p.Values), nil
	case space.TypeInt:
		low, _ := p.Low.AsInt()
		high, _ := p.High.AsInt()
		step, _ := p.Step.AsInt()
		step = max(step, 1)
		last := (uint64(high) - uint64(low)) / uint64(step)
		return levels{n: plus(last, 1), isInt: true, low: uint64(low), step: uint64(step)}, nil
	default:
		return levels{n: axis.Levels, own: own}, nil
	}
}

func list(values []space.Value) levels {
	places := make(map[space.Value]uint64, len(values))
	for i, v := range values {
		places[v] = uint64(i)
	}
	return levels{n: uint64(len(values)), listed: values, places: places}
}

// thinned returns up to count values at equal distances, both ends included.
func thinned(own *space.Space, count int) levels {
	var values []space.Value
	for i := range count {
		u := 0.5
		if count > 1 {
			u = float64(i) / float64(count-1)
		}
		if v := valueAt(own, u); len(values) == 0 || v != values[len(values)-1] {
			values = append(values, v)
		}
	}
	return list(values)
}

// valueAt decodes a point of a space with one parameter, for 0 ≤ u ≤ 1.
func valueAt(own *space.Space, u float64) (v space.Value) {
	c, _ := own.Decode([]float64{u}) // cannot fail
	for _, v = range c.All() {
	}
	return v
}

// at returns value i < n.
func (l *levels) at(i uint64) space.Value {
	switch {
	case l.listed != nil:
		return l.listed[i]
	case l.isInt:
		return space.Int(int64(l.low + i*l.step))
	default:
		return valueAt(l.own, (float64(i)+0.5)/float64(l.n))
	}
}

// find returns the index of a value. If the grid does not use it, ok is false.
func (l *levels) find(v space.Value) (i uint64, ok bool) {
	if l.isInt {
		x, isInt := v.AsInt()
		offset := uint64(x) - l.low
		return offset / l.step, isInt && x >= int64(l.low) && offset%l.step == 0 && offset/l.step < l.n
	}
	i, ok = l.places[v]
	return i, ok
}
