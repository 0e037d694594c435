package dataset

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/bkbtuner/bkb/learners/data"
)

// Small files as pandas, DuckDB, R and spreadsheets write them, without any option. Each is read
// as pandas or DuckDB reads it, or refused with the place and the remedy, as the table of
// docs/data.md says. testdata/forms.py writes the files and what those have read.
func TestForms(t *testing.T) {
	text, err := os.ReadFile("testdata/forms.json")
	if err != nil {
		t.Fatal(err)
	}
	type column struct {
		Name  string
		Kind  data.Kind
		Cells []any
	}
	var forms map[string]struct {
		Columns []column
		Refused []string
	}
	if err := json.Unmarshal(text, &forms); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("testdata/forms/*")
	if err != nil || len(files) != len(forms) || len(files) < 30 {
		t.Fatalf("%d files and %d forms: %v", len(files), len(forms), err)
	}
	page, err := os.ReadFile("../../docs/data.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range forms {
		verdict := "read |"
		if want.Refused != nil {
			verdict = "refused: "
		}
		if !regexp.MustCompile("(?m)^\\| `" + regexp.QuoteMeta(name) + "` \\| .* \\| " + regexp.QuoteMeta(verdict)).Match(page) {
			t.Errorf("docs/data.md has no row of %s that says %q", name, verdict)
		}
		t.Run(name, func(t *testing.T) {
			table, err := Open(background, Options{NoTarget: true}, filepath.Join("testdata/forms", name))
			if want.Refused != nil {
				refused(t, name, err, want.Refused...)
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			columns := table.Columns()
			if len(columns) != len(want.Columns) || table.Len() != len(want.Columns[0].Cells) {
				t.Fatalf("%d columns of %d rows: %s", len(columns), table.Len(), table.Report())
			}
			for c, w := range want.Columns {
				if columns[c].Name != w.Name || columns[c].Kind != w.Kind {
					t.Errorf("column %d is %q, %s, want %q, %s", c+1, columns[c].Name, columns[c].Kind, w.Name, w.Kind)
				}
			}
			if err := table.scan(background, nil, func(row int, cells []float64) error {
				for c, w := range want.Columns {
					var got any = cells[c]
					switch {
					case math.IsNaN(cells[c]):
						got = nil
					case columns[c].Kind == data.Categorical:
						got = columns[c].Levels[int(cells[c])]
					}
					if got != w.Cells[row] {
						t.Errorf("row %d, %q: %v, want %v", row+1, w.Name, got, w.Cells[row])
					}
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
		})
	}
}
