package bo

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/tuner/space"
)

// reaction lists a table of Olympus (Häse et al. 2021, arXiv:2010.04153) in which every
// combination of its parameters' values was measured, some more than once. The parameters
// are categories in the order of the file, and numeric ones are ordinals. The sign is 1 if
// the first measurement is to be minimized, and -1 if it is to be maximized.
//
// The other tables of Olympus are scattered points in continuous spaces. Looking up the
// nearest point would change the function, so they are not included.
func reaction(name string, tier Tier, file string, sign float64, numeric bool, parameters ...string) Listed {
	name = "table/chem-" + name
	return Listed{name, tier, func(data string) (Problem, error) {
		rows, err := readReactions(data, file, len(parameters))
		if err != nil {
			return nil, err
		}
		var columns []*column
		for i, p := range parameters {
			columns = append(columns, rows.column(i, p, numeric))
		}
		t, err := newTable(name, columns...)
		if err != nil {
			return nil, err
		}
		for _, key := range rows.keys {
			measured := rows.measured[key]
			for i := range measured {
				measured[i] *= sign
			}
			if err := t.add(strings.Split(key, "\n"), measured...); err != nil {
				return nil, err
			}
		}
		return t.finish()
	}}
}

// reactions is a table by configuration, which is a text with a line for each parameter.
type reactions struct {
	keys     []string // in the order of the file
	measured map[string][]float64
}

func readReactions(data, file string, parameters int) (*reactions, error) {
	r := &reactions{measured: map[string][]float64{}}
	return r, readCSV(data, "chem_olympus/"+file+".data.csv.gz", ',', false, func(fields []string) error {
		key := strings.Join(fields[:parameters], "\n")
		y, err := strconv.ParseFloat(fields[parameters], 64)
		if err != nil {
			return err
		}
		if _, ok := r.measured[key]; !ok {
			r.keys = append(r.keys, key)
		}
		r.measured[key] = append(r.measured[key], y)
		return nil
	})
}

// column returns parameter i with all its values.
func (r *reactions) column(i int, name string, numeric bool) *column {
	var found []string
	seen := map[string]bool{}
	for _, key := range r.keys {
		if text := strings.Split(key, "\n")[i]; !seen[text] {
			seen[text] = true
			found = append(found, text)
		}
	}
	if !numeric {
		return categorical(name, texts(found...)...)
	}
	var values []float64
	for _, text := range found {
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return categorical(name, texts(found...)...)
		}
		values = append(values, v)
	}
	slices.SortFunc(values, cmp.Compare)
	return &column{parameter: space.NewOrdinal(name, floats(values...)...)}
}
