package space

import "fmt"

// Edge is an end of a parameter's range at which a configuration lies. Values beyond it may
// be better.
type Edge struct {
	Parameter string
	Low, High Value // the least and the greatest value of the range
	Upper     bool  // at High, else at Low
}

// String describes the edge, such as "lambda is at the lower end of its range (1e-09…1)".
func (e Edge) String() string {
	end := "lower"
	if e.Upper {
		end = "upper"
	}
	return fmt.Sprintf("%s is at the %s end of its range (%s…%s)", e.Parameter, end, e.Low, e.High)
}

// These define the end of a range.
const (
	edgeShare  = 0.01 // of the range, on its scale
	edgeLevels = 5    // least number of values of a range that has ends
)

// Edges returns the ends of ranges at which c lies, in order of declaration. They belong to
// active floats, ints, and ordinals of rising or falling numbers. The value must be the
// first or the last, or within 1 % of the range, on its scale, of one.
//
// Edges leaves out ranges of at most four values, because somebody chose these one by one.
// It also leaves out natural limits. These are 0, the 1 below which nothing can be counted,
// and the 1 above a range of shares. A range of shares is not logarithmic and begins at 0
// or higher. Missing and illegal values are skipped.
func (s *Space) Edges(c Config) []Edge {
	var out []Edge
	for i := range s.members {
		m := &s.members[i]
		v, ok := c.Get(m.Name)
		if !ok || m.axis == nil || m.axis.levels() != 0 && m.axis.levels() < edgeLevels {
			continue
		}
		if e, ok := m.edge(v); ok {
			out = append(out, e)
		}
	}
	return out
}

// edge returns the end of m's range at which v lies.
func (m *member) edge(v Value) (Edge, bool) {
	low, high := m.axis.decode(0), m.axis.decode(1)
	first, _ := m.axis.encode(low)
	last, _ := m.axis.encode(high)
	u, legal := m.axis.encode(v)
	if !legal || m.Type == TypeCategorical || m.Type == TypeOrdinal && !monotone(m.Values) {
		return Edge{}, false
	}
	share := (u - first) / (last - first)
	if less(high, low) { // a falling ordinal
		low, high, share = high, low, 1-share
	}
	e := Edge{Parameter: m.Name, Low: low, High: high, Upper: share > 0.5}
	return e, (share <= edgeShare || share >= 1-edgeShare) && !m.closed(&e)
}

// closed reports whether no value can lie beyond the end of e.
func (m *member) closed(e *Edge) bool {
	low, _ := e.Low.Number()
	high, _ := e.High.Number()
	if !e.Upper {
		return low == 0 || low == 1 && e.Low.kind == KindInt
	}
	share := m.Type == TypeFloat && m.Scale != Log && low >= 0
	return high == 0 || high == 1 && share
}

// monotone reports whether values are numbers that only rise or only fall.
func monotone(values []Value) bool {
	for i, v := range values {
		if v.kind != KindInt && v.kind != KindFloat {
			return false
		}
		if i > 1 && less(values[i-1], v) != less(values[0], values[1]) {
			return false
		}
	}
	return true
}
