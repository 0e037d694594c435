package report

import (
	"encoding/json"
	"math"
)

// MarshalJSON writes a table as its columns and its rows, a list each. NaN is
// null, as is an infinity, which JSON has not.
func (t *Table) MarshalJSON() ([]byte, error) {
	type column struct {
		Name string `json:"name"`
		Unit string `json:"unit,omitempty"`
	}
	out := struct {
		Name    string   `json:"name"`
		Title   string   `json:"title"`
		Columns []column `json:"columns"`
		Rows    [][]any  `json:"rows"`
	}{t.Name, t.Title, make([]column, len(t.Columns)), make([][]any, len(t.Rows))}
	for c := range t.Columns {
		out.Columns[c] = column{t.Columns[c].Name, t.Columns[c].Unit}
	}
	for i, row := range t.Rows {
		out.Rows[i] = make([]any, len(row))
		for c, v := range row {
			if f, ok := v.(float64); ok && (math.IsNaN(f) || math.IsInf(f, 0)) {
				v = nil
			}
			out.Rows[i][c] = v
		}
	}
	return json.Marshal(out)
}
