package dataset

import (
	"bytes"
	"io"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/bkbtuner/bkb/learners/data"
)

// Values of each logical type have their scale, sign and unit. The files are from
// testdata/parquet_types.py, and the values from its source.
func TestParquetTypes(t *testing.T) {
	const before, leap = -0.75, 1709208000.125 // 1969-12-31 23:59:59.25 and 2024-02-29 12:00:00.125
	table := opened(t, Options{NoTarget: true}, "testdata/types.parquet")
	rows := cells(t, table)
	for c, want := range []struct {
		name  string
		kind  data.Kind
		cells [2]float64
	}{
		{"u8", data.Numeric, [2]float64{0, 255}},
		{"u16", data.Numeric, [2]float64{0, 65535}},
		{"u32", data.Numeric, [2]float64{1 << 31, 1<<32 - 1}},
		{"u64", data.Numeric, [2]float64{1 << 63, 1<<64 - 2048}},
		{"i8", data.Numeric, [2]float64{-128, 127}},
		{"i64", data.Numeric, [2]float64{-1 << 62, 1 << 62}},
		{"f16", data.Numeric, [2]float64{-0.5, 65504}},
		{"f32", data.Numeric, [2]float64{0.5, -2}},
		{"dec32", data.Numeric, [2]float64{-1.2345, 99999.9999}},
		{"dec64", data.Numeric, [2]float64{-1.2345, 0.0001}},
		{"dec128", data.Numeric, [2]float64{-1.25, 123456789012345678901234567.5}},
		{"dec256", data.Numeric, [2]float64{-1.25, 0.1}},
		{"date", data.Time, [2]float64{-86400, 1709164800}},
		{"time_ms", data.Time, [2]float64{1, 45000.25}},
		{"time_ns", data.Time, [2]float64{1, 45000.25}},
		{"ts_ms", data.Time, [2]float64{before, leap}},
		{"ts_us", data.Time, [2]float64{before, leap}},
		{"ts_ns", data.Time, [2]float64{before, leap}},
		{"bool", data.Boolean, [2]float64{1, 0}},
		{"text", data.Categorical, [2]float64{0, 1}},
		{"null", data.Numeric, [2]float64{-999, -999}},
	} {
		col := table.Columns()[c]
		if got := [2]float64{rows[0][c], rows[1][c]}; col.Name != want.name || col.Kind != want.kind || got != want.cells || rows[2][c] != -999 {
			t.Errorf("%s is %s %v, want %s %s %v", col.Name, col.Kind, got, want.name, want.kind, want.cells)
		}
	}
	old := opened(t, Options{NoTarget: true}, "testdata/int96.parquet")
	if diff := cmp.Diff([][]float64{{before}, {leap}, {-999}}, cells(t, old)); diff != "" || old.Columns()[0].Kind != data.Time {
		t.Error(diff, old.Columns()[0].Kind)
	}
}

// Types that are neither numbers, texts nor times are refused by name.
func TestParquetTypesRefused(t *testing.T) {
	for want, node := range map[string]parquet.Node{
		"JSON": parquet.JSON(), "BSON": parquet.BSON(), "FIXED_LEN_BYTE_ARRAY": parquet.Leaf(parquet.FixedLenByteArrayType(3)),
		"INTERVAL": parquet.IntervalNode(),
	} {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[any](&b, parquet.NewSchema("s", parquet.Group{"a": node}))
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		_, err := Open(background, Options{}, file(t, "x.parquet", b.String()))
		refused(t, want, err, `column "a"`, want, "numbers, texts or times")
	}
}

// The infinite dates and times of databases are refused.
func TestParquetInfiniteTimes(t *testing.T) {
	for name, write := range map[string]func(w io.Writer) error{
		"date": func(w io.Writer) error {
			type row struct {
				A int32 `parquet:"a,date"`
			}
			return parquet.Write(w, []row{{19000}, {math.MaxInt32}})
		},
		"timestamp": func(w io.Writer) error {
			type row struct {
				A int64 `parquet:"a,timestamp(microsecond)"`
			}
			return parquet.Write(w, []row{{19000}, {-math.MaxInt64}})
		},
	} {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			t.Fatal(err)
		}
		_, err := Open(background, Options{NoTarget: true}, file(t, "x.parquet", b.String()))
		refused(t, name, err, `row 2, column "a"`, "infinite", "drop the column")
	}
}

// A number of Parquet can be a category, with all digits of an integer.
func TestParquetCategories(t *testing.T) {
	type row struct {
		ID int64   `parquet:"id"`
		Z  float64 `parquet:"z"`
		Y  float64 `parquet:"y"`
	}
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b)
	w.Write([]row{{1<<53 + 1, 0.5, 1}, {1 << 53, 7, 2}, {-3, 0.5, 4}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	table := opened(t, Options{Categorical: []string{"id", "z"}}, file(t, "x.parquet", b.String()))
	if diff := cmp.Diff([][]string{{"9007199254740993", "9007199254740992", "-3"}, {"0.5", "7"}}, [][]string{table.Columns()[0].Levels, table.Columns()[1].Levels}); diff != "" {
		t.Error(diff)
	}
}

// Texts of digits in Parquet are categories, and numbers with signs in texts are refused as
// in CSV.
func TestParquetTextsOfDigits(t *testing.T) {
	type row struct {
		S string `parquet:"s"`
	}
	open := func(texts ...string) (*Table, error) {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b)
		for _, s := range texts {
			w.Write([]row{{s}})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return Open(background, Options{NoTarget: true}, file(t, "x.parquet", b.String()))
	}
	for _, texts := range [][]string{{"1", "2"}, {"07", "7"}, {"01000", "10115"}, {"1.5", "-2", "+3"}, {"12", "A1"}} {
		table, err := open(texts...)
		if err != nil {
			t.Error(err)
		} else if diff := cmp.Diff(texts, table.Columns()[0].Levels); diff != "" {
			t.Error(diff)
		}
	}
	for want, texts := range map[string][]string{"1,234": {"500", "1,234"}, "$5": {"$5", "$6"}, "12 %": {"12 %", "3 %"}} {
		_, err := open(texts...)
		refused(t, want, err, `column "s"`, want, "write numbers with a decimal point")
		if whole := want == "1,234"; whole != strings.Contains(err.Error(), "Categorical") || strings.Contains(err.Error(), "Decimal") {
			t.Error(err) // prices and shares are no categories, and Parquet has no decimal commas
		}
	}
}

// Texts of Parquet are missing where those of CSV are, and numbers where a model has them.
// Truth values and times that are categories are the texts of CSV. Files may have no rows.
func TestParquetAsCSV(t *testing.T) {
	type row struct {
		A string    `parquet:"a"`
		B bool      `parquet:"b"`
		C time.Time `parquet:"c,timestamp"`
		N string    `parquet:"n"`
		Y float64   `parquet:"y"`
	}
	noon := time.Date(2024, 2, 29, 12, 0, 0, 250e6, time.UTC)
	write := func(rows ...row) string {
		var b bytes.Buffer
		w := parquet.NewGenericWriter[row](&b)
		w.Write(rows)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return file(t, "x.parquet", b.String())
	}
	path := write(row{"p", true, noon, "1.5", 1}, row{" q ", false, noon.AddDate(0, 0, 1), "-2", 2}, row{"NA", true, noon, "NULL", 3}, row{"", true, noon, "?", 4})
	text := file(t, "x.csv", "a,b,c,n,y\np,true,2024-02-29 12:00:00.25,1.5,1\nq,false,2024-03-01 12:00:00.25,-2,2\n?,true,2024-02-29 12:00:00.25,,3\n,true,2024-02-29 12:00:00.25,,4\n")
	o := Options{Categorical: []string{"b", "c"}}
	table := opened(t, o, text)
	o.Model = fitted(t, table, nil, data.EncodingOptions{Missing: data.FillMean})
	o.Categorical = nil
	for _, path := range []string{path, text} {
		again := opened(t, o, path)
		if diff := cmp.Diff(cells(t, table), cells(t, again)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(table.Columns()[2].Levels, again.Columns()[2].Levels); diff != "" {
			t.Error(diff)
		}
	}
	own := opened(t, Options{Missing: []string{"p"}}, path)
	if diff := cmp.Diff([]string{"q", "NA", ""}, own.Columns()[0].Levels); diff != "" || own.Columns()[0].Missing != 1 {
		t.Error(diff)
	}
	_, err := Open(background, Options{Weights: "c"}, path)
	refused(t, "times as weights", err, `column "c"`, `"2024-02-29 12:00:00.25" is not a number`)
	_, err = Open(background, Options{Model: o.Model}, write(row{N: "many"}))
	refused(t, "a word", err, `column "n"`, `"many" is not a number`, "Missing")
	_, err = Open(background, Options{}, write())
	refused(t, "no rows", err, "it has no rows")
	if rows := cells(t, opened(t, Options{}, write(), path)); len(rows) != 4 {
		t.Errorf("%d rows", len(rows))
	}
}
