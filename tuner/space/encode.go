package space

import (
	"fmt"
	"math"
)

// Neutral is the coordinate of an inactive parameter. It is the middle, so that neither end
// of its range is favoured. Decode ignores it.
const Neutral = 0.5

// CubeError reports a point that is not in the cube. It has the wrong length, or a
// coordinate that is not a finite number.
type CubeError struct {
	Want, Got int     // lengths
	Index     int     // of the coordinate, -1 if the length is wrong
	Value     float64 // of the coordinate
}

// Error describes the fault of the point.
func (e *CubeError) Error() string {
	if e.Index < 0 {
		return fmt.Sprintf("space: point has %d coordinates: the space has %d", e.Got, e.Want)
	}
	return fmt.Sprintf("space: coordinate %d = %v: must be a finite number", e.Index, e.Value)
}

// Encode writes the coordinates of c to dst, which has length [Space.Dim]. It fails as
// [Space.Validate] does, and with a [CubeError] if dst has another length. After an error
// the contents of dst are unspecified.
func (s *Space) Encode(c Config, dst []float64) error {
	if len(dst) != len(s.axes) {
		return &CubeError{Want: len(s.axes), Got: len(dst), Index: -1}
	}
	values := make([]Value, len(s.members))
	if !s.gather(c, values) || !s.encode(c, values, dst) {
		return s.Validate(c)
	}
	return nil
}

// gather writes the values of c by index. If c names a parameter that s does not have, ok
// is false.
func (s *Space) gather(c Config, values []Value) (ok bool) {
	ok = true
	for _, e := range c.entries {
		if k, known := s.index[e.Name]; known {
			values[k] = e.Value
		} else {
			ok = false
		}
	}
	return ok
}

// encode writes the coordinates of gathered values. If c, which they came from, is not
// valid, ok is false.
func (s *Space) encode(c Config, values []Value, dst []float64) (ok bool) {
	seen := 0
	for _, k := range s.order {
		m := &s.members[k]
		u := Neutral
		if m.active(values) {
			seen++
			if u, ok = m.coordinateOf(values[k]); !ok {
				return false
			}
		}
		if m.axis != nil {
			dst[m.coordinate] = u
		}
	}
	return seen == len(c.entries) && (len(s.constraints) == 0 || s.keeps(values, make([]float64, len(values))))
}

// coordinateOf encodes a value of m. If m cannot take it, ok is false.
func (m *member) coordinateOf(v Value) (u float64, ok bool) {
	if m.axis == nil {
		return 0, v == m.Values[0]
	}
	return m.axis.encode(v)
}

// Decode returns the configuration at u, of length [Space.Dim]. Coordinates outside [0, 1] count
// as the nearer end, because rounding makes optimizers overstep. Where u breaks the constraints,
// the result is a configuration nearby that keeps them. A wrong length, NaN or an infinity is a
// [CubeError]. The result is valid, and decoding its encoding returns it again, bit for bit.
func (s *Space) Decode(u []float64) (Config, error) {
	if err := s.checkPoint(u); err != nil {
		return Config{}, err
	}
	return s.collect(s.valuesAt(u)), nil
}

// valuesAt decodes u to values that keep the constraints, with the number of active ones.
func (s *Space) valuesAt(u []float64) (values []Value, active int) {
	if len(s.constraints) > 0 {
		w := s.workspace()
		s.settle(u, w)
		return w.values, w.active
	}
	values = make([]Value, len(s.members))
	return values, s.decode(u, values)
}

func (s *Space) checkPoint(u []float64) error {
	if len(u) != len(s.axes) {
		return &CubeError{Want: len(s.axes), Got: len(u), Index: -1}
	}
	for i, x := range u {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return &CubeError{Want: len(s.axes), Got: len(u), Index: i, Value: x}
		}
	}
	return nil
}

// decode writes the values at u by index, the zero Value for inactive
// parameters, and returns the number of active ones.
func (s *Space) decode(u []float64, values []Value) (active int) {
	for _, k := range s.order {
		m := &s.members[k]
		switch {
		case !m.active(values):
			continue
		case m.axis == nil:
			values[k] = m.Values[0]
		default:
			values[k] = m.axis.decode(min(max(u[m.coordinate], 0), 1))
		}
		active++
	}
	return active
}

func (s *Space) collect(values []Value, active int) Config {
	entries := make([]Assignment, 0, active)
	for _, k := range s.byName {
		if values[k].kind != KindNone {
			entries = append(entries, Assignment{Name: s.members[k].Name, Value: values[k]})
		}
	}
	return Config{entries: entries}
}

// Snap moves u onto the encoding of the configuration it decodes to. Coordinates become
// cell middles, decimals of continuous ranges, or [Neutral] for inactive parameters. It
// fails as Decode does.
func (s *Space) Snap(u []float64) error {
	if err := s.checkPoint(u); err != nil {
		return err
	}
	values, _ := s.valuesAt(u)
	s.encodeAll(values, u)
	return nil
}

// Round returns the configuration that c's encoding decodes to. This is c itself, unless a
// continuous value has more digits than the encoding keeps, or an int range is too large
// for float64. It fails as [Space.Validate] does.
func (s *Space) Round(c Config) (Config, error) {
	u := make([]float64, len(s.axes))
	if err := s.Encode(c, u); err != nil {
		return Config{}, err
	}
	return s.Decode(u)
}

// ActiveAt writes, for every coordinate, whether its parameter is active at u. Both have
// length [Space.Dim]. It fails as Decode does.
func (s *Space) ActiveAt(u []float64, active []bool) error {
	if err := s.checkPoint(u); err != nil {
		return err
	}
	if len(active) != len(s.axes) {
		return &CubeError{Want: len(s.axes), Got: len(active), Index: -1}
	}
	values := make([]Value, len(s.members))
	s.decode(u, values)
	for i, k := range s.axes {
		active[i] = values[k].kind != KindNone
	}
	return nil
}
