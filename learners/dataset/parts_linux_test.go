package dataset

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
)

// partRow is a row of the files below. Some cells are missing, and the later files have
// categories that the first ones lack.
type partRow struct {
	A float64  `parquet:"a"`
	B *int32   `parquet:"b,optional"`
	C string   `parquet:"c,dict"`
	D *float32 `parquet:"d,optional,snappy"`
	Y float64  `parquet:"y"`
}

func partRows(n int) []partRow {
	r := rand.New(rand.NewPCG(3, 4))
	rows := make([]partRow, n)
	for i := range rows {
		b, d := int32(r.IntN(100)), r.Float32()
		rows[i] = partRow{A: r.NormFloat64(), B: &b, C: fmt.Sprintf("kind %d", r.IntN(1+i*20/n)), D: &d, Y: r.NormFloat64()}
		if r.IntN(9) == 0 {
			rows[i].B = nil
		}
	}
	return rows
}

// writeParts writes rows into as many Parquet files as there are parts, of row groups of
// 1,000 rows.
func writeParts(t *testing.T, dir string, rows []partRow, parts int) (paths []string) {
	t.Helper()
	for p := range parts {
		path := filepath.Join(dir, fmt.Sprintf("part-%03d.parquet", p))
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		w := parquet.NewGenericWriter[partRow](f, parquet.MaxRowsPerRowGroup(1000))
		if _, err := w.Write(rows[len(rows)*p/parts : len(rows)*(p+1)/parts]); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		paths = append(paths, path)
	}
	return paths
}

// Parquet files in parts give the columns and numbers of one joined file, so that a learner
// fits the same model.
func TestParquetParts(t *testing.T) {
	dir := t.TempDir()
	rows := partRows(7001)
	read := func(parts int) (*Table, [][]float64) {
		t.Helper()
		own := filepath.Join(dir, fmt.Sprint(parts))
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		table := opened(t, Options{Target: []string{"y"}, ChunkFile: filepath.Join(own, "x.chunks")}, writeParts(t, own, rows, parts)...)
		return table, cells(t, table)
	}
	one, want := read(1)
	if len(want) != len(rows) {
		t.Fatalf("%d rows of %d", len(want), len(rows))
	}
	for _, parts := range []int{2, 7, 100} {
		table, got := read(parts)
		if diff := cmp.Diff(one.Columns(), table.Columns()); diff != "" {
			t.Errorf("%d parts have other columns: %s", parts, diff)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d parts have other rows: %s", parts, diff)
		}
	}
}

// partsVariable has the files that the child of TestPartsMemory converts.
const partsVariable = "BKB_TEST_PARTS"

// TestPartsMemory converts Parquet files in processes of their own. Sixteen files take as
// much memory as four.
func TestPartsMemory(t *testing.T) {
	if dir := os.Getenv(partsVariable); dir != "" {
		paths, err := filepath.Glob(filepath.Join(dir, "part-*.parquet"))
		if err != nil || len(paths) == 0 {
			t.Fatal(paths, err)
		}
		opened(t, Options{Target: []string{"y"}, ChunkFile: filepath.Join(dir, "x.chunks")}, paths...)
		status, err := os.ReadFile("/proc/self/status")
		if err != nil {
			t.Fatal(err)
		}
		_, after, _ := strings.Cut(string(status), "VmHWM:")
		fmt.Printf("peak %s\n", strings.Fields(after)[0])
		return
	}
	racetest.Alone(t)
	rows := partRows(50_000)
	peak := func(parts int) int64 {
		t.Helper()
		dir := t.TempDir()
		var all []partRow
		for range parts {
			all = append(all, rows...)
		}
		writeParts(t, dir, all, parts)
		cmd := exec.Command(os.Args[0], "-test.run=^TestPartsMemory$")
		cmd.Env = append(os.Environ(), partsVariable+"="+dir)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var most int64
		if _, err := fmt.Sscanf(string(out), "peak %d", &most); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		return most
	}
	few, many := peak(4), peak(16)
	cells := int64(16 * len(rows) * 5 * 4 >> 10)
	t.Logf("peak memory %d KiB for 4 files, %d KiB for 16, whose cells take %d KiB", few, many, cells)
	if many > few+cells/2 {
		t.Errorf("16 files take %d KiB, and 4 of them %d KiB", many, few)
	}
}
