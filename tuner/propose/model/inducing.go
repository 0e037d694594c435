package model

import "slices"

// setDictionary makes members the inducing points.
func (s *Surface) setDictionary(list []Result, members []member) {
	s.Dictionary, s.Rows, s.Epochs = nil, nil, nil
	lower := slices.ContainsFunc(members, func(m member) bool { return m.row > 0 })
	late := slices.ContainsFunc(members, func(m member) bool { return list[m.of].Epoch > 0 })
	for _, m := range members {
		s.Dictionary = append(s.Dictionary, list[m.of].Trial)
		if lower {
			s.Rows = append(s.Rows, m.row)
		}
		if late {
			s.Epochs = append(s.Epochs, list[m.of].Epoch)
		}
	}
}

// inputs returns the inputs of the dictionary.
func (s *Surface) inputs(list []Result, q quantity) [][]float64 {
	type source struct{ trial, epoch int }
	from := func(n int) source {
		if s.Epochs != nil {
			return source{s.Dictionary[n], s.Epochs[n]}
		}
		return source{s.Dictionary[n], 0}
	}
	at := make(map[source]*Result, len(s.Dictionary))
	for n := range s.Dictionary {
		at[from(n)] = nil
	}
	for i := range list {
		key := source{list[i].Trial, list[i].Epoch}
		if _, ok := at[key]; ok {
			at[key] = &list[i]
		}
	}
	var out [][]float64
	for n := range s.Dictionary {
		r, row := at[from(n)], 0
		if s.Rows != nil {
			row = s.Rows[n]
		}
		if r == nil {
			continue
		}
		if samples := s.samples(r, q); row < len(samples) {
			out = append(out, samples[row].x)
		}
	}
	return out
}
