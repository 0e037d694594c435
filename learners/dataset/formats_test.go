package dataset

import (
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// cells returns all dense cells of a table, NaN as −999.
func cells(t testing.TB, table *Table) [][]float64 {
	t.Helper()
	var out [][]float64
	err := table.scan(context.Background(), nil, func(_ int, row []float64) error {
		var r []float64
		for _, v := range row {
			if v != v {
				v = -999
			}
			r = append(r, v)
		}
		out = append(out, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func names(cols []Column) string {
	var s []string
	for _, c := range cols {
		s = append(s, c.Name)
	}
	return strings.Join(s, " ")
}

func gzipped(text string) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	w.Write([]byte(text))
	w.Close()
	return b.String()
}

func TestCSV(t *testing.T) {
	for _, c := range []struct {
		name, text string
		o          Options
		columns    string
		target     string
		want       [][]float64
		delimiter  string
		header     bool
	}{
		{"comma and header", "a,b,c\n1,2,3\n4,5,6\n", Options{}, "a b c", "c", [][]float64{{1, 2, 3}, {4, 5, 6}}, ",", true},
		{"carriage returns, no last line feed", "a,b\r\n1,2\r\n3,4", Options{}, "a b", "b", [][]float64{{1, 2}, {3, 4}}, ",", true},
		{"byte order mark", "\xef\xbb\xbfa,b\n1,2\n", Options{}, "a b", "b", [][]float64{{1, 2}}, ",", true},
		{"carriage returns alone", "a,b\r1,2\r3,4\r", Options{}, "a b", "b", [][]float64{{1, 2}, {3, 4}}, ",", true},
		{"UTF-16, little end first", "\xff\xfea\x00,\x00b\x00\n\x001\x00,\x002\x00\n\x00", Options{}, "a b", "b", [][]float64{{1, 2}}, ",", true},
		{"UTF-16, big end first", "\xfe\xff\x00a\x00,\x00b\x00\n\x001\x00,\x002\x00\n", Options{}, "a b", "b", [][]float64{{1, 2}}, ",", true},
		{"decimal commas", "a;b\n1,5;2\n-2,25;3\n,5e1;4\n", Options{}, "a b", "b", [][]float64{{1.5, 2}, {-2.25, 3}, {5, 4}}, ";", true},
		{"decimal commas alone", "a;b\n1,5;2,5\n3;1,25\n", Options{}, "a b", "b", [][]float64{{1.5, 2.5}, {3, 1.25}}, ";", true},
		{"decimal commas, no header", "1,5\t2\n3\t4,5\n", Options{Decimal: ','}, "column 1 column 2", "column 2", [][]float64{{1.5, 2}, {3, 4.5}}, "\t", false},
		{"decimal commas in all cells", "1,5;2,5\n3,5;4,5\n", Options{}, "column 1 column 2", "column 2", [][]float64{{1.5, 2.5}, {3.5, 4.5}}, ";", false},
		{"decimal comma among numbers", "a;b\n3;2\n2;3\n1;4\n4,5;1\n", Options{}, "a b", "b", [][]float64{{3, 2}, {2, 3}, {1, 4}, {4.5, 1}}, ";", true},
		{"decimal commas of three digits, one of two", "a;b\n1,067;1\n970;2\n1,16;3\n", Options{}, "a b", "b", [][]float64{{1.067, 1}, {970, 2}, {1.16, 3}}, ";", true},
		{"decimal commas of three digits, one behind zero", "a;b\n1,067;1\n0,970;2\n", Options{}, "a b", "b", [][]float64{{1.067, 1}, {0.97, 2}}, ";", true},
		{"decimal commas asked for", "a,b\n\"1,067\",1\n\"12,164\",2\n", Options{Decimal: ','}, "a b", "b", [][]float64{{1.067, 1}, {12.164, 2}}, ",", true},
		{"a town called Total", "a,b\nTotal,1\nx,2\nTotal,4\n", Options{}, "a b", "b", [][]float64{{0, 1}, {1, 2}, {0, 4}}, ",", true},
		{"a sum by chance", "a,b\nx,1\ny,2\nz,3\n", Options{}, "a b", "b", [][]float64{{0, 1}, {1, 2}, {2, 3}}, ",", true},
		{"tabs", "1\t2\n3\t4\n", Options{}, "column 1 column 2", "column 2", [][]float64{{1, 2}, {3, 4}}, "\t", false},
		{"semicolons with commas in text", "a;b\nx,y;2\nz,y;4\n", Options{}, "a b", "b", [][]float64{{0, 2}, {1, 4}}, ";", true},
		{"bars", "1|2|3\n4|5|6\n", Options{}, "column 1 column 2 column 3", "column 3", [][]float64{{1, 2, 3}, {4, 5, 6}}, "|", false},
		{"runs of spaces", " 1.0  2 \n\t3 4\n", Options{}, "column 1 column 2", "column 2", [][]float64{{1, 2}, {3, 4}}, " ", false},
		{"one column", "1\n2\n", Options{}, "column 1", "", [][]float64{{1}, {2}}, ",", false},
		{"missing values", "a,b\n,1\nNA,2\nnan,3\nNULL,4\n?,5\n6,n/a\n", Options{}, "a b", "b", [][]float64{{-999, 1}, {-999, 2}, {-999, 3}, {-999, 4}, {-999, 5}, {6, -999}}, ",", true},
		{"own missing value", "a,b\n-,1\n2,3\n", Options{Missing: []string{"-"}}, "a b", "b", [][]float64{{-999, 1}, {2, 3}}, ",", true},
		{"quotes", "\"a \"\"x\"\"\",b\n\"1\",\"2\"\n3,\"4\"\n", Options{}, "a \"x\" b", "b", [][]float64{{1, 2}, {3, 4}}, ",", true},
		{"quoted line feed and delimiter", "a,b\n\"x\ny,z\",2\nq,3\n", Options{}, "a b", "b", [][]float64{{0, 2}, {1, 3}}, ",", true},
		{"quote inside", "a,b\nx\"y,2\nz,3\n", Options{}, "a b", "b", [][]float64{{0, 2}, {1, 3}}, ",", true},
		{"empty names", "a,,c\n1,2,3\n", Options{Header: HeaderYes}, "a column 2 c", "c", [][]float64{{1, 2, 3}}, ",", true},
		{"target by name", "Label,x,z\n0,1,5\n1,2,6\n", Options{}, "Label x z", "Label", [][]float64{{0, 1, 5}, {1, 2, 6}}, ",", true},
		{"target first of two values", "0,1,5\n1,2,6\n1,3,7\n", Options{}, "column 1 column 2 column 3", "column 1", [][]float64{{0, 1, 5}, {1, 2, 6}, {1, 3, 7}}, ",", false},
		{"targets by position", "1,2,3\n4,5,6\n", Options{Target: []string{"-1", "1"}}, "column 1 column 2 column 3", "column 3 column 1", [][]float64{{1, 2, 3}, {4, 5, 6}}, ",", false},
		{"dropped", "id,a,b\nq1,1,2\n7,3,4\n", Options{Drop: []string{"id"}}, "a b", "b", [][]float64{{1, 2}, {3, 4}}, ",", true},
		{"no target", "a,b\n1,2\n", Options{NoTarget: true}, "a b", "", [][]float64{{1, 2}}, ",", true},
		{"numbers as categories", "a,b\n10,2\n2,3\n10,4\n", Options{Categorical: []string{"a"}}, "a b", "b", [][]float64{{0, 2}, {1, 3}, {0, 4}}, ",", true},
		{"all text, no header", "x,p\ny,q\nx,p\n", Options{}, "column 1 column 2", "column 2", [][]float64{{0, 0}, {1, 1}, {0, 0}}, ",", false},
		{"float32", "a,b\n0.1,2\n0.5,3\n", Options{Float32: true}, "a b", "b", [][]float64{{0.1, 2}, {0.5, 3}}, ",", true},
	} {
		for _, compressed := range []bool{false, true} {
			text, name := c.text, "x.csv"
			if compressed {
				text, name = gzipped(text), "x.csv.gz"
			}
			t.Run(fmt.Sprintf("%s/gzip=%v", c.name, compressed), func(t *testing.T) {
				table := opened(t, c.o, file(t, name, text))
				r := table.Report()
				if diff := cmp.Diff(c.want, cells(t, table)); diff != "" {
					t.Error(diff)
				}
				if got := names(table.Columns()); got != c.columns {
					t.Errorf("columns %q, want %q", got, c.columns)
				}
				if got := strings.Join(r.Target, " "); got != c.target {
					t.Errorf("target %q, want %q", got, c.target)
				}
				if r.Delimiter != c.delimiter || r.Header != c.header || r.Compressed != compressed || r.Rows != len(c.want) {
					t.Errorf("report %+v", r)
				}
			})
		}
	}
}

// The words of a report.
func TestReportText(t *testing.T) {
	table := opened(t, Options{}, "testdata/flowers.csv")
	want, err := os.ReadFile("testdata/flowers.report.txt")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), table.Report().String()); diff != "" {
		t.Error(diff)
	}
}

func TestSeveralFiles(t *testing.T) {
	a, b, c := file(t, "a.csv", "x,y\n1,2\n"), file(t, "b.csv", "x,y\n3,4\n"), file(t, "c.csv", "x,z\n3,4\n")
	if diff := cmp.Diff([][]float64{{1, 2}, {3, 4}}, cells(t, opened(t, Options{}, a, b))); diff != "" {
		t.Error(diff)
	}
	if _, err := Open(context.Background(), Options{}, a, c); err == nil || !strings.Contains(err.Error(), `"x", "z", are not those of the first file, "x", "y"`) {
		t.Errorf("other columns: %v", err)
	}
}

// A fault of one of several files names the file, and the row and line in it. So does a fault
// that is found when all files have been read.
func TestFaultInSeveralFiles(t *testing.T) {
	first, empty := file(t, "a.csv", "x,y,w\n1,2,1\n3,4,1\n"), file(t, "empty.csv", "x,y,w\n")
	for name, c := range map[string]struct {
		text string
		want data.CellError
	}{
		"fields":  {"x,y,w\n5,6,1\n7,8\n", data.CellError{Row: 2, Line: 3, Reason: "it has 2 fields"}},
		"large":   {"x,y,w\n5,6,1\n7,1e999,1\n", data.CellError{Row: 2, Line: 3, Column: "y"}},
		"weight":  {"x,y,w\n5,6,-1\n", data.CellError{Row: 1, Line: 2, Column: "w"}},
		"text":    {"x,y,w\n\n5,6,1\n7,8,1\nblue,8,1\n", data.CellError{Row: 3, Line: 5, Column: "x"}},
		"missing": {"x,y,w\n5,6,1\n,8,1\n", data.CellError{Row: 2, Line: 3, Column: "x"}},
	} {
		bad := file(t, "bad.csv", c.text)
		table, err := Open(background, Options{Weights: "w", Target: []string{"y"}}, first, empty, bad, empty, first)
		if err == nil {
			_, err = table.FitEncoding(background, nil, data.EncodingOptions{Task: data.Regression, Missing: data.MissingError})
		}
		var got *data.CellError
		if !errors.As(err, &got) || got.File != bad || got.Row != c.want.Row || got.Line != c.want.Line || got.Column != c.want.Column || !strings.Contains(got.Reason, c.want.Reason) {
			t.Errorf("%s: %v, want row %d, line %d", name, err, c.want.Row, c.want.Line)
		}
	}
}

func TestTargetFile(t *testing.T) {
	x, y, short := file(t, "x.csv", "1,2\n3,4\n"), file(t, "y.csv", "-1\n1\n"), file(t, "s.csv", "-1\n")
	long := file(t, "l.csv", "-1\n1\n1\n")
	table := opened(t, Options{TargetPath: y}, x)
	if diff := cmp.Diff([][]float64{{1, 2, -1}, {3, 4, 1}}, cells(t, table)); diff != "" {
		t.Error(diff)
	}
	if got := table.Report().Target; len(got) != 1 || got[0] != "target" {
		t.Errorf("target %q", got)
	}
	for path, want := range map[string]string{short: "ends after 1 row", long: "more rows than the inputs, 2"} {
		if _, err := Open(context.Background(), Options{TargetPath: path}, x); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestStandardInput(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	w.WriteString("a,b\n1,2\n")
	w.Close()
	old := os.Stdin
	os.Stdin = r
	defer func() { os.Stdin = old; r.Close() }()
	if diff := cmp.Diff([][]float64{{1, 2}}, cells(t, opened(t, Options{}, "-"))); diff != "" {
		t.Error(diff)
	}
}

func TestLibSVM(t *testing.T) {
	text := "# a comment\n+1 1:0.5 3:-2e-1 # more\n\n-1 2:7\n+1\n"
	for _, single := range []bool{false, true} {
		table := opened(t, Options{Float32: single, Features: 4}, file(t, "x.txt", text))
		rows, ok := table.Sparse()
		if !ok {
			t.Fatalf("format %s", table.Report().Format)
		}
		var got []string
		for i := range rows.Len() {
			switch m := rows.(type) {
			case *kernel.CSR[float64]:
				got = append(got, fmt.Sprint(m.Row(i)))
			case *kernel.CSR[float32]:
				got = append(got, fmt.Sprint(m.Row(i)))
			}
		}
		if diff := cmp.Diff([]string{"[0 2] [0.5 -0.2]", "[1] [7]", "[] []"}, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff([][]float64{{1}, {-1}, {1}}, cells(t, table)); diff != "" {
			t.Error(diff)
		}
		if rows.Dim() != 4 {
			t.Errorf("%d features", rows.Dim())
		}
	}
	zero := opened(t, Options{ZeroBased: true}, file(t, "x.svm", "spam 0:1 2:3\nham 1:1\n"))
	if x, _ := zero.Sparse(); x.Dim() != 3 || zero.Columns()[0].Kind != data.Categorical {
		t.Errorf("zero-based: %d features, label %v", x.Dim(), zero.Columns()[0])
	}
}

// npy returns a NumPy array as numpy.save writes it.
func npy(descr string, fortran bool, shape string, data []byte) string {
	f := map[bool]string{true: "True", false: "False"}[fortran]
	h := fmt.Sprintf("{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }", descr, f, shape)
	h += strings.Repeat(" ", 63-(len(h)+10)%64) + "\n"
	return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(h)))) + h + string(data)
}

// encode returns numbers of any fixed size in a byte order.
func encode(order binary.ByteOrder, data any) []byte {
	var b bytes.Buffer
	if err := binary.Write(&b, order, data); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func TestNPY(t *testing.T) {
	le, be := binary.LittleEndian, binary.BigEndian
	want := [][]float64{{1, 2, 3}, {4, 5, 6}}
	for _, c := range []struct {
		descr   string
		fortran bool
		order   binary.ByteOrder
		data    any
	}{
		{"<f8", false, le, []float64{1, 2, 3, 4, 5, 6}},
		{">f8", false, be, []float64{1, 2, 3, 4, 5, 6}},
		{"<f8", true, le, []float64{1, 4, 2, 5, 3, 6}},
		{">f4", true, be, []float32{1, 4, 2, 5, 3, 6}},
		{"<f4", false, le, []float32{1, 2, 3, 4, 5, 6}},
		{"|i1", false, le, []int8{1, 2, 3, 4, 5, 6}},
		{"<i2", false, le, []int16{1, 2, 3, 4, 5, 6}},
		{">i4", false, be, []int32{1, 2, 3, 4, 5, 6}},
		{"<i8", false, le, []int64{1, 2, 3, 4, 5, 6}},
		{"|u1", false, le, []uint8{1, 2, 3, 4, 5, 6}},
		{">u2", false, be, []uint16{1, 2, 3, 4, 5, 6}},
		{"<u4", false, le, []uint32{1, 2, 3, 4, 5, 6}},
		{"<u8", true, le, []uint64{1, 4, 2, 5, 3, 6}},
	} {
		table := opened(t, Options{}, file(t, "x.npy", npy(c.descr, c.fortran, "2, 3", encode(c.order, c.data))))
		if diff := cmp.Diff(want, cells(t, table)); diff != "" {
			t.Errorf("%s fortran=%v: %s", c.descr, c.fortran, diff)
		}
	}
	for _, c := range []struct {
		what, text string
		want       [][]float64
	}{
		{"vector", npy("<i2", false, "3,", encode(le, []int16{-1, 0, 300})), [][]float64{{-1}, {0}, {300}}},
		{"three axes", npy("|u1", false, "2, 2, 1", []byte{1, 2, 3, 4}), [][]float64{{1, 2}, {3, 4}}},
		{"bool", npy("|b1", false, "2,", []byte{0, 1}), [][]float64{{0}, {1}}},
		{"NaN", npy("<f8", false, "2,", encode(le, []float64{math.NaN(), 1})), [][]float64{{-999}, {1}}},
	} {
		if diff := cmp.Diff(c.want, cells(t, opened(t, Options{}, file(t, "x.npy", c.text)))); diff != "" {
			t.Errorf("%s: %s", c.what, diff)
		}
	}
	for text, want := range map[string]string{
		npy("<c16", false, "1,", nil):                               "type is c16",
		npy("<f8", false, "", nil):                                  "single number",
		npy("<f8", false, "2,", make([]byte, 8)):                    "ends in row 2 of 2",
		npy("<f8", true, "2, 2", make([]byte, 8)):                   "8 bytes of numbers where 32",
		npy("<f8", false, "99999999999, 99999999999", nil):          "too large",
		npy("<f8", false, "1, 200000", nil):                         "200000 columns, the limit is 65536",
		npy("<f8", false, "0, 3", nil):                              "empty matrix",
		npy("<f8", false, "1,", encode(le, []float64{math.Inf(1)})): "row 1, column \"column 1\": the value is infinite",
		npy("<f8", true, "2, 2, 2", make([]byte, 64)):               "more than two axes",
		"\x93NUMPY\x01\x00\x03\x00abc":                              "only plain arrays",
		npy("<f8", false, "99999999999999999999,", nil):             "too large",
		"\x93NUMPY\x02\x00\xff\xff\xff\x7f":                         "header has 2147483647 bytes",
	} {
		if _, err := Open(context.Background(), Options{}, file(t, "x.npy", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Labels of archives keep all digits, and truth values are classes of their own.
func TestNPZLabels(t *testing.T) {
	le := binary.LittleEndian
	for want, y := range map[string]string{
		"9007199254740992 9007199254740993":       npy("<i8", false, "2,", encode(le, []int64{1<<53 + 1, 1 << 53})),
		"9223372036854775808 9223372036854775811": npy("<u8", false, "2,", encode(le, []uint64{1<<63 + 3, 1 << 63})),
		"false true": npy("|b1", false, "2,", []byte{1, 0}),
		"-1 7":       npy("<i2", false, "2, 1", encode(le, []int16{7, -1})),
	} {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, text := range map[string]string{"x.npy": npy("<f8", false, "2,", encode(le, []float64{1, 2})), "y.npy": y} {
			w, err := z.Create(name)
			if err != nil {
				t.Fatal(err)
			}
			w.Write([]byte(text))
		}
		z.Close()
		path := file(t, "x.npz", b.String())
		e := fitted(t, opened(t, Options{}, path), nil, data.EncodingOptions{Task: data.Classification})
		if got := strings.Join(e.Classes, " "); got != want {
			t.Errorf("classes %s, want %s", got, want)
		}
		if again := opened(t, Options{Model: e}, path, path); again.Len() != 4 || len(again.Targets()) != 1 {
			t.Errorf("%d rows, targets %v", again.Len(), again.Targets())
		}
	}
}

func TestNPZ(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for name, text := range map[string]string{
		"X.npy":     npy("<f8", false, "2, 2", encode(binary.LittleEndian, []float64{1, 2, 3, 4})),
		"y.npy":     npy("<i4", false, "2,", encode(binary.LittleEndian, []int32{7, 8})),
		"other.npy": npy("<i4", false, "3,", encode(binary.LittleEndian, []int32{7, 8, 9})),
	} {
		w, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		w.Write([]byte(text))
	}
	z.Close()
	for _, text := range []string{b.String(), gzipped(b.String())} {
		path := file(t, "x.npz", text)
		table := opened(t, Options{}, path)
		if diff := cmp.Diff([][]float64{{1, 2, 7}, {3, 4, 8}}, cells(t, table)); diff != "" {
			t.Error(diff)
		}
		if got := table.Targets(); len(got) != 1 || got[0] != 2 {
			t.Errorf("targets %v", got)
		}
		_, err := Open(context.Background(), Options{TargetArray: "other"}, path)
		if err == nil || !strings.Contains(err.Error(), "different numbers of rows") {
			t.Errorf("lengths: %v", err)
		}
		if _, err = Open(context.Background(), Options{Array: "xx"}, path); err == nil || !strings.Contains(err.Error(), `did you mean "X"`) {
			t.Errorf("name: %v", err)
		}
	}
}

func TestIDX(t *testing.T) {
	images := "\x00\x00\x08\x03\x00\x00\x00\x02\x00\x00\x00\x01\x00\x00\x00\x03" + "\x01\x02\x03\x04\x05\xff"
	labels := "\x00\x00\x08\x01\x00\x00\x00\x02\x09\x00"
	table := opened(t, Options{TargetPath: file(t, "labels.gz", gzipped(labels))}, file(t, "images.gz", gzipped(images)))
	if diff := cmp.Diff([][]float64{{1, 2, 3, 9}, {4, 5, 255, 0}}, cells(t, table)); diff != "" {
		t.Error(diff)
	}
	e, err := table.FitEncoding(context.Background(), nil, data.EncodingOptions{})
	if err != nil || e.Task != data.Classification {
		t.Errorf("%v, task %v", err, e)
	}
	floats := "\x00\x00\x0d\x02\x00\x00\x00\x01\x00\x00\x00\x02" + string(encode(binary.BigEndian, []float32{1.5, -2}))
	if diff := cmp.Diff([][]float64{{1.5, -2}}, cells(t, opened(t, Options{}, file(t, "f.idx", floats)))); diff != "" {
		t.Error(diff)
	}
}

func TestParquet(t *testing.T) {
	type row struct {
		A float64  `parquet:"a"`
		B *int32   `parquet:"b,optional"`
		C string   `parquet:"c,dict"`
		D bool     `parquet:"d"`
		E *float32 `parquet:"e,optional,snappy"`
	}
	five, half := int32(5), float32(0.5)
	var b bytes.Buffer
	w := parquet.NewGenericWriter[row](&b)
	w.Write([]row{{1, &five, "x", true, nil}, {2.5, nil, "y", false, &half}})
	w.Flush() // ends a row group
	w.Write([]row{{3, nil, "x", true, nil}})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	want := [][]float64{{1, 5, 0, 1, -999}, {2.5, -999, 1, 0, 0.5}, {3, -999, 0, 1, -999}}
	for _, text := range []string{b.String(), gzipped(b.String())} {
		table := opened(t, Options{Target: []string{"d"}}, file(t, "x.parquet", text))
		if diff := cmp.Diff(want, cells(t, table)); diff != "" {
			t.Error(diff)
		}
		if names(table.Columns()) != "a b c d e" || table.Columns()[2].Kind != data.Categorical {
			t.Errorf("columns %+v", table.Columns())
		}
	}
	var nested bytes.Buffer
	n := parquet.NewGenericWriter[struct{ L []int32 }](&nested)
	n.Close()
	if _, err := Open(context.Background(), Options{}, file(t, "n.parquet", nested.String())); err == nil || !strings.Contains(err.Error(), "nested") {
		t.Errorf("nested: %v", err)
	}
}

func TestParseNumber(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-0": 0, "1.": 1, ".5": 0.5, "+1e3": 1000, "1E-3": 0.001, "9007199254740993": 9007199254740992,
		"0.1": 0.1, "123456789012345678901234567890": 123456789012345678901234567890, "1e-400": 0, "5e-324": 5e-324,
		"1.7976931348623157e308": math.MaxFloat64, "000000000000000000000001": 1, "1e22": 1e22, "1e23": 1e23,
	} {
		if v, err := parseNumber([]byte(text)); err != nil || v != want {
			t.Errorf("%q: %v, %v", text, v, err)
		}
	}
	for _, text := range []string{"", "+", ".", "e5", "1e", "1e+", "0x1", "1_0", "NaN", "inf", "Infinity", "1 2", "1.2.3", "--1", "1e5.5", "١"} {
		if v, err := parseNumber([]byte(text)); err == nil {
			t.Errorf("%q: %v", text, v)
		}
	}
}

// Open ends with its context even if standard input sends nothing.
func TestStandardInputIsInterrupted(t *testing.T) {
	for name, sent := range map[string]string{"at once": "", "in the middle": "a,b\n" + strings.Repeat("1,2\n", 1<<15)} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			old := os.Stdin
			os.Stdin = r
			defer func() { os.Stdin = old; w.Close(); r.Close() }()
			ctx, cancel := context.WithCancel(background)
			go func() {
				_, _ = w.WriteString(sent)
				cancel()
			}()
			if _, err := Open(ctx, Options{}, "-"); !errors.Is(err, context.Canceled) {
				t.Errorf("%v, want %v", err, context.Canceled)
			}
		})
	}
}

// Bytes arrive in pieces of any size, followed by errors.
func TestInterruptibleReader(t *testing.T) {
	text := strings.Repeat("0123456789", 30_000)
	r := newInterruptible(background, iotest.DataErrReader(iotest.HalfReader(strings.NewReader(text))))
	got, err := io.ReadAll(iotest.OneByteReader(r))
	if err != nil || string(got) != text {
		t.Errorf("%d of %d bytes, %v", len(got), len(text), err)
	}
	failing := newInterruptible(background, io.MultiReader(strings.NewReader("ab"), iotest.ErrReader(io.ErrNoProgress)))
	if got, err := io.ReadAll(failing); string(got) != "ab" || !errors.Is(err, io.ErrNoProgress) {
		t.Errorf("%q, %v", got, err)
	}
}

// Texts of times and truth values mean the same in CSV, JSON and Parquet, also for a model
// of another format.
func TestWordsInFormats(t *testing.T) {
	type row struct {
		When *string `parquet:"when,optional"`
		OK   string  `parquet:"ok"`
		Y    float64 `parquet:"y"`
	}
	for name, c := range map[string]struct {
		when []string
		want data.Kind
	}{
		"days":  {[]string{"2024-02-29", "", "1969-12-31"}, data.Time},
		"hours": {[]string{"2024-02-29T12:00:00", "2024-02-29T12:00:00.5", ""}, data.Time},
		"local": {[]string{"01/02/2024", "02/01/2024", "13/02/2024"}, data.Time},
		"texts": {[]string{"x", "2024-02-29", "z"}, data.Categorical},
	} {
		var text, records strings.Builder
		var parquets bytes.Buffer
		w := parquet.NewGenericWriter[row](&parquets)
		text.WriteString("when,ok,y\n")
		for i, when := range c.when {
			ok := []string{"true", "False"}[i%2]
			fmt.Fprintf(&text, "%s,%s,%d\n", when, ok, i)
			value := &when
			if when == "" {
				value = nil
			}
			cell, _ := json.Marshal(value)
			fmt.Fprintf(&records, `{"when": %s, "ok": %q, "y": %d}`+"\n", cell, ok, i)
			w.Write([]row{{value, ok, float64(i)}})
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		paths := map[string]string{"csv": file(t, "t.csv", text.String()), "json": file(t, "t.json", records.String()), "parquet": file(t, "t.parquet", parquets.String())}
		first := opened(t, Options{}, paths["csv"])
		e := fitted(t, first, nil, data.EncodingOptions{Missing: data.FillMostFrequent})
		for format, path := range paths {
			for _, model := range []*data.Encoding{nil, e} {
				table := opened(t, Options{Model: model}, path)
				kinds := []data.Kind{table.Columns()[0].Kind, table.Columns()[1].Kind}
				if diff := cmp.Diff([]data.Kind{c.want, data.Boolean}, kinds) + cmp.Diff(cells(t, first), cells(t, table)); diff != "" {
					t.Errorf("%s in %s: %s", name, format, diff)
				}
			}
		}
	}
}
