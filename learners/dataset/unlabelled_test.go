package dataset_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
)

// Rows without a target are left out, in memory and in a chunk file alike. Errors still
// name the rows of the file.
func TestLabelled(t *testing.T) {
	var b strings.Builder
	b.WriteString("a,b,y\n")
	const n = 3000
	for i := range n {
		y := fmt.Sprint(i)
		if i%3 == 1 || i > 1200 && i < 2600 { // more than a block in a row
			y = ""
		}
		fmt.Fprintf(&b, "%d,%d,%s\n", i, i%7, y)
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]dataset.Options{"memory": {}, "chunks": {ChunkFile: path + ".chunks"}} {
		t.Run(name, func(t *testing.T) {
			table, err := dataset.Open(t.Context(), o, path)
			if err != nil {
				t.Fatal(err)
			}
			defer table.Close()
			kept, skipped, err := table.Labelled(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if kept.Len()+skipped != n || table.Len() != n || kept.Report().Rows != kept.Len() || kept.Columns()[2].Missing != 0 || table.Columns()[2].Missing != skipped {
				t.Errorf("%d kept, %d skipped, %d in the table", kept.Len(), skipped, table.Len())
			}
			e, err := kept.FitEncoding(t.Context(), nil, data.EncodingOptions{KeepInputs: true, KeepTargets: true})
			if err != nil {
				t.Fatal(err)
			}
			src, err := kept.Encode(t.Context(), e)
			if err != nil {
				t.Fatal(err)
			}
			y, err := data.Targets(t.Context(), src)
			if err != nil || len(y) != kept.Len() {
				t.Fatalf("%d targets: %v", len(y), err)
			}
			i := 0
			for row := range n {
				if row%3 == 1 || row > 1200 && row < 2600 {
					continue
				}
				if y[i] != float64(row) {
					t.Fatalf("target %d is %v, want %d", i, y[i], row)
				}
				i++
			}
			// The same encoding reads all inputs, and also the labelled rows.
			all, err := table.EncodeInputs(t.Context(), e)
			if err != nil || all.Len() != n || all.Outputs() != 0 {
				t.Fatalf("inputs alone: %v", err)
			}
			again, more, err := kept.Labelled(t.Context(), e)
			if err != nil || more != 0 || again.Len() != kept.Len() {
				t.Errorf("again: %d more, %v", more, err)
			}
		})
	}
}

func TestLabelledErrors(t *testing.T) {
	dir := t.TempDir()
	open := func(text string) *dataset.Table {
		t.Helper()
		path := filepath.Join(dir, "x.csv")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		table, err := dataset.Open(t.Context(), dataset.Options{Target: []string{"y"}}, path)
		if err != nil {
			t.Fatal(err)
		}
		return table
	}
	if _, _, err := open("a,y\n1,\n2,\n").Labelled(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "no row has a target") {
		t.Errorf("without any target: %v", err)
	}
	kept, skipped, err := open("a,b,y\n1,2,\n3,4,1\n,6,2\n7,1,3\n").Labelled(t.Context(), nil)
	if err != nil || skipped != 1 {
		t.Fatalf("%d skipped, %v", skipped, err)
	}
	if _, err := kept.FitEncoding(t.Context(), nil, data.EncodingOptions{}); err == nil || !strings.Contains(err.Error(), `row 3 (line 4), column "a"`) {
		t.Errorf("a missing input: %v", err)
	}
}
