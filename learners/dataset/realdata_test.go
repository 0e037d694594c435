package dataset

import (
	"bufio"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/datatest"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners/data"
)

// Every tabular file of the manifest has the rows and columns that the manifest states.
func TestManifest(t *testing.T) {
	racetest.Alone(t)
	dir := datatest.Folder(t)
	f, err := os.Open(filepath.Join(dir, "MANIFEST.md"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	groups := map[string]int{}
	for lines.Scan() {
		cells := strings.Split(lines.Text(), "|")
		if len(cells) < 6 || strings.Contains(cells[1], ".json") {
			continue
		}
		name := strings.TrimSpace(cells[1])
		rows, err := strconv.Atoi(strings.TrimSpace(cells[3]))
		cols, err2 := strconv.Atoi(strings.TrimSpace(cells[4]))
		if err != nil || err2 != nil {
			continue
		}
		group, _, _ := strings.Cut(name, "/")
		groups[group]++
		if rows*cols > racetest.Size(200_000, math.MaxInt) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			table := opened(t, Options{Float32: true}, filepath.Join(dir, name))
			r := table.Report()
			if table.Len() != rows || len(table.Columns()) != cols {
				t.Errorf("%d×%d, want %d×%d\n%s", table.Len(), len(table.Columns()), rows, cols, r)
			}
		})
	}
	if err := lines.Err(); err != nil || len(groups) < 11 {
		t.Errorf("groups %v, %v", groups, err)
	}
}

// The manifest states these facts about single files.
func TestRealFiles(t *testing.T) {
	racetest.Alone(t)
	dir := datatest.Folder(t)
	at := func(name string) string { return filepath.Join(dir, name) }

	housing := opened(t, Options{Target: []string{"median_house_value"}}, at("california_housing/housing.csv.gz"))
	_, err := housing.FitEncoding(background, nil, data.EncodingOptions{})
	refused(t, "housing", err, `row 183 (line 184), column "total_bedrooms"`, "207 missing")
	e := fitted(t, housing, nil, data.EncodingOptions{Missing: data.FillMedian})
	src := applied(t, e, housing)
	if src.Dim() != 8+5 || *e.Inputs[4].Fill != 435 { // 435 as in ageron's notebook and in pandas
		t.Errorf("housing: %d inputs, median %v", src.Dim(), *e.Inputs[4].Fill)
	}
	if err := kernel.CheckFinite("housing", src.(*data.Memory).Rows()); err != nil {
		t.Error(err)
	}

	higgs := opened(t, Options{}, at("higgs_h2o15k/higgs_test_5k.csv.gz"))
	if got := higgs.Targets(); len(got) != 1 || got[0] != 0 {
		t.Errorf("higgs: target %v", got)
	}

	susy := opened(t, Options{TargetPath: at("susy_10k/susy_10Kn_train_label.csv.gz")}, at("susy_10k/susy_10Kn_train.csv.gz"))
	e = fitted(t, susy, nil, data.EncodingOptions{})
	if e.Task != data.Classification || e.Classes[0] != "-1" || e.Classes[1] != "1" || e.Dim() != 8 {
		t.Errorf("susy: %s %v %d", e.Task, e.Classes, e.Dim())
	}
	for _, in := range e.Inputs { // the features are z-scored
		if math.Abs(in.Center) > 1e-6 || math.Abs(in.Scale-1) > 1e-3 {
			t.Errorf("susy: %+v", in)
		}
	}

	digits := opened(t, Options{Float32: true, TargetPath: at("mnist/t10k-labels-idx1-ubyte.gz")}, at("mnist/t10k-images-idx3-ubyte.gz"))
	e = fitted(t, digits, nil, data.EncodingOptions{})
	if e.Task != data.Classification || e.Outputs() != 10 || e.Classes[9] != "9" {
		t.Errorf("mnist: %s %v", e.Task, e.Classes)
	}

	kegg := opened(t, Options{}, at("uci/keggdirected.data.csv.gz"))
	if share := float64(kegg.Report().Duplicates) / float64(kegg.Len()); math.Abs(share-0.67) > 0.01 {
		t.Errorf("kegg: share of duplicates %v", share)
	}

	abalone := opened(t, Options{}, at("small_tabular/abalone.csv.gz"))
	e = fitted(t, abalone, nil, data.EncodingOptions{})
	if math.Abs(e.Targets[0].Center-9.934) > 5e-4 || e.Task != data.Regression {
		t.Errorf("abalone: mean rings %v", e.Targets[0].Center)
	}
}
