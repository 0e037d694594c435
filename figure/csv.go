package figure

import (
	"encoding/csv"
	"io"
	"math"
	"strconv"
)

// WriteCSV writes the table as CSV with a header. Numbers have all their digits. NaN is
// an empty cell.
func (t *Table) WriteCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	line := make([]string, len(t.Columns))
	for c, column := range t.Columns {
		line[c] = column.heading()
	}
	if err := w.Write(line); err != nil {
		return err
	}
	for _, row := range t.Rows {
		for c, v := range row {
			line[c] = exact(v)
		}
		if err := w.Write(line); err != nil {
			return err
		}
	}
	w.Flush()
	return w.Error()
}

// exact is a cell for programs.
func exact(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int:
		return strconv.Itoa(v)
	case float64:
		if !math.IsNaN(v) {
			return strconv.FormatFloat(v, 'g', -1, 64)
		}
	}
	return ""
}
