package space

// dialect has the words of one file form, so that errors use the words of the file.
type dialect struct {
	low, high, step, values, scale string // names of the fields
	linear                         string // how to ask for the linear scale
	nulls                          bool   // a number may be null, which means none
	quoted                         bool   // numbers may be texts, of which an empty one means none
}

var (
	ownDialect    = dialect{"low", "high", "step", "values", "scale", "scale: linear", false, false}
	optunaDialect = dialect{"low", "high", "step", "choices", "log", "log: false", true, false}
	katibDialect  = dialect{"min", "max", "step", "list", "distribution", "distribution: uniform", false, true}
)

// source is the origin of the parameters.
type source struct {
	words  dialect
	lines  []map[string]int // per parameter, the line by field as written, "" for the parameter itself
	broken []bool           // per parameter, true if reading it failed
}

// line returns the line of a field, or of the parameter, or 0.
func (s *source) line(parameter int, field string) int {
	if parameter >= len(s.lines) {
		return 0
	}
	if n, ok := s.lines[parameter][field]; ok {
		return n
	}
	return s.lines[parameter][""]
}
