package bandit

// Source is one way to choose the next input. A policy on a space is a list of them, in order.
type Source interface {
	// Speaks reports whether the source may choose the next input.
	Speaks() bool
	// Propose returns the input, or nil if the source has none.
	Propose() ([]float64, error)
}

// Propose returns the input of the first source that speaks and has one, or nil.
func Propose(sources []Source) ([]float64, error) {
	for _, s := range sources {
		if !s.Speaks() {
			continue
		}
		if x, err := s.Propose(); x != nil || err != nil {
			return x, err
		}
	}
	return nil, nil
}
