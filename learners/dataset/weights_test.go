package dataset_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/learners/dataset"
)

// The column of weights is not among the columns. Rows of weight 0 are not in the table, and
// rows without a target lose their weights.
func TestWeights(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"names.csv": "a,w,y\n1,0.5,1\n2,3,\n3,0,2\n4,2,3\n", "plain.csv": "1,0.5,1\n2,3,\n3,0,2\n4,2,3\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, o := range []dataset.Options{{Weights: "2"}, {Weights: "2", ChunkFile: path + ".chunks"}, {Weights: "2", Float32: true}} {
			table, err := dataset.Open(t.Context(), o, path)
			if err != nil {
				t.Fatal(err)
			}
			if got := table.Weights(); !slices.Equal(got, []float64{0.5, 3, 2}) || len(table.Columns()) != 2 {
				t.Errorf("%s: weights %v, %d columns", name, got, len(table.Columns()))
			}
			kept, _, err := table.Labelled(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := kept.Weights(); !slices.Equal(got, []float64{0.5, 2}) {
				t.Errorf("%s: weights %v of rows with a target", name, got)
			}
			table.Close()
		}
	}
}
