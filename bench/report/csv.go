package report

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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

// WriteCSVFiles writes every table as folder/name-table.csv, where name is that of the
// experiment. It creates the folder. If path ends in .csv it is the file for the only
// table. It returns the files written.
func (r *Result) WriteCSVFiles(name, path string) ([]string, error) {
	if strings.HasSuffix(path, ".csv") {
		if len(r.Tables) != 1 {
			return nil, fmt.Errorf("report: %s has %d tables, too many for the one file %s; name a folder", name, len(r.Tables), path)
		}
		return []string{path}, r.Tables[0].writeFile(path)
	}
	var files []string
	for _, t := range r.Tables {
		file := filepath.Join(path, name+"-"+t.Name+".csv")
		if err := t.writeFile(file); err != nil {
			return files, err
		}
		files = append(files, file)
	}
	return files, nil
}

func (t *Table) writeFile(path string) error {
	var b bytes.Buffer
	if err := t.WriteCSV(&b); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o644)
}
