package report

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/figure"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// sample has every kind of cell and of column.
func sample() *Result {
	r := &Result{}
	t := r.Table("scores", "Accuracy of scores", Column{Name: "sampler"}, Column{Name: "λ"}, Column{Name: "M"},
		Column{Name: "time", Unit: "s", Format: "%.2f"}, Column{Name: "R-ACC"})
	t.Add("BLESS", 1e-5, 2205, 0.123456, 1.0/3)
	t.Add("uniform, \"flat\"", 0.001, 1900, math.NaN(), math.Inf(1))
	r.Table("empty", "", Column{Name: "n"})
	r.Note("λ is %s.", "per sample")
	r.Plot("growth", "Growth", figure.Axis{}, figure.Axis{}).Add(figure.Series{Name: "line", X: []float64{10, 100}, Y: []float64{1, 2}})
	return r
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (−want +got; -update rewrites):\n%s", name, diff)
	}
}

func TestWriters(t *testing.T) {
	r := sample()
	var b bytes.Buffer
	if err := r.WriteText(&b, 0); err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.txt", b.Bytes())
	for _, width := range []int{40, 30} {
		b.Reset()
		if err := r.WriteText(&b, width); err != nil {
			t.Fatal(err)
		}
		golden(t, fmt.Sprintf("sample-%d.txt", width), b.Bytes())
	}
	b.Reset()
	for _, table := range r.Tables {
		b.WriteString("\n")
		if err := table.WriteMarkdown(&b); err != nil {
			t.Fatal(err)
		}
	}
	golden(t, "sample.md", b.Bytes())
	b.Reset()
	if err := r.Tables[0].WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.csv", b.Bytes())
	line, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.json", append(line, '\n'))
}

func TestShapesAreChecked(t *testing.T) {
	table := (&Result{}).Table("t", "", Column{Name: "a"}, Column{Name: "b"})
	for name, f := range map[string]func(){
		"short row":    func() { table.Add(1) },
		"strange cell": func() { table.Add(1, []int{}) },
		"column":       func() { table.Float("c") },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

func TestFilesAreWritten(t *testing.T) {
	r, dir := sample(), filepath.Join(t.TempDir(), "new")
	r.Plot("nothing", "", figure.Axis{}, figure.Axis{})
	files, err := r.WriteCSVFiles("fig1", dir)
	if err != nil || len(files) != 2 || files[0] != filepath.Join(dir, "fig1-scores.csv") {
		t.Fatalf("%v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "sample.csv", text)
	if files, err = r.WritePNGFiles("fig1", dir); err != nil || len(files) != 1 {
		t.Errorf("plots: %v, %v", files, err)
	}
	one := filepath.Join(dir, "one.csv")
	if _, err := r.WriteCSVFiles("fig1", one); err == nil {
		t.Error("two tables went into one file")
	}
	r.Tables = r.Tables[:1]
	if files, err = r.WriteCSVFiles("fig1", one); err != nil || len(files) != 1 || files[0] != one {
		t.Errorf("one table: %v, %v", files, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 4 {
		t.Errorf("in the folder are %v, %v", left, err)
	}
}
