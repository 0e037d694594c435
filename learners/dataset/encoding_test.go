package dataset

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners/data"
)

var background = context.Background()

// fitted fits an encoding and fails the test on an error.
func fitted(t testing.TB, table *Table, rows []int, o data.EncodingOptions) *data.Encoding {
	t.Helper()
	e, err := table.FitEncoding(background, rows, o)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// pairs returns all rows of a source.
func pairs(t testing.TB, src data.Source) (x [][]float64, y []float64) {
	t.Helper()
	m, err := data.Load(background, src)
	if err != nil {
		t.Fatal(err)
	}
	for i := range m.Len() {
		row := make([]float64, m.Dim())
		switch p := m.Rows().(type) {
		case *kernel.CSR[float64]:
			col, val := p.Row(i)
			for k, c := range col {
				row[c] = val[k]
			}
		default:
			kernel.CopyRow(row, p, i)
		}
		x = append(x, row)
	}
	return x, m.Targets()
}

func applied(t testing.TB, e *data.Encoding, table *Table) data.Source {
	t.Helper()
	src, err := table.Encode(background, e)
	if err != nil {
		t.Fatal(err)
	}
	return src
}

// refused fails unless err mentions all of want.
func refused(t *testing.T, what string, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: no error", what)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s: %q does not say %q", what, err, w)
		}
	}
}

const people = `age,city,const,wage
20,Oslo,1,100
40,Bonn,1,300
30,Oslo,1,200
30,Rome,2,400
`

func TestEncode(t *testing.T) {
	table := opened(t, Options{}, file(t, "p.csv", people))
	e := fitted(t, table, []int{0, 1, 2}, data.EncodingOptions{Unknown: data.UnknownZero})
	s := math.Sqrt(200.0 / 3)
	if diff := cmp.Diff([]string{"age", "city=Bonn", "city=Oslo"}, e.InputNames()); diff != "" {
		t.Error(diff)
	}
	if summary := table.Report().Summary(e); len(summary) != 5 || summary[2] != `dropped  for one value alone "const"` {
		t.Errorf("summary %q", summary)
	}
	x, y := pairs(t, applied(t, e, table))
	if diff := cmp.Diff([][]float64{{-10 / s, 0, 1}, {10 / s, 1, 0}, {0, 0, 1}, {0, 0, 0}}, x, near15); diff != "" {
		t.Error(diff)
	}
	e.Decode(y)
	if diff := cmp.Diff([]float64{100, 300, 200, 400}, y, near15); diff != "" {
		t.Error(diff)
	}
	if e.Task != data.Regression || e.Outputs() != 1 || e.OutputNames()[0] != "wage" {
		t.Errorf("task %s", e.Task)
	}
	strict := fitted(t, table, []int{0, 1, 2}, data.EncodingOptions{})
	_, err := table.Encode(background, strict)
	refused(t, "unknown level", err, `row 4, column "city"`, `"Rome" is not among`, `"Bonn", "Oslo"`)
	kept := fitted(t, table, nil, data.EncodingOptions{KeepInputs: true, KeepTargets: true})
	if x, y := pairs(t, applied(t, kept, table)); x[1][0] != 40 || y[1] != 300 {
		t.Errorf("kept: %v, %v", x, y)
	}
}

// near15 compares numbers up to a few units in the last place.
var near15 = cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-13*(1+math.Abs(a)) })

// Predictions need the same columns, by name in any order or by position.
func TestOtherColumns(t *testing.T) {
	train := opened(t, Options{}, file(t, "p.csv", people))
	e := fitted(t, train, nil, data.EncodingOptions{})
	want, _ := pairs(t, applied(t, e, train))
	for _, c := range []struct {
		name, text string
		o          Options
		targets    int
		want       []string // of the error, none if there is none
	}{
		{"same", people, Options{}, 1, nil},
		{"other order, no target", "const,city,age\n1,Oslo,20\n1,Bonn,40\n1,Oslo,30\n2,Rome,30\n", Options{}, 0, nil},
		{"missing and extra", "city,weight\nOslo,20\n", Options{}, 0, []string{`missing "age", "const"`, `not known to the model "weight"`}},
		{"other kind", "age,city,const\nx,Oslo,1\n", Options{Header: HeaderYes}, 0, []string{`"age" is categorical, in the model it is numeric`, `"x"`}},
		{"numbers for categories", "age,city,const\n1,2,1\n", Options{}, 0, []string{`"city" is numeric, in the model it is categorical`, "Options.Categorical"}},
		{"no names", "1,Oslo,1,3\n", Options{}, 0, []string{"by name"}},
		{"sparse", "1 1:2\n", Options{Format: LibSVM}, 0, []string{"dense columns"}},
	} {
		table := opened(t, c.o, file(t, "q", c.text))
		src, err := table.Encode(background, e)
		if c.want != nil {
			refused(t, c.name, err, c.want...)
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		x, _ := pairs(t, src)
		if diff := cmp.Diff(want, x); diff != "" || src.Outputs() != c.targets {
			t.Errorf("%s: %d targets, %s", c.name, src.Outputs(), diff)
		}
	}
	extra := opened(t, Options{}, file(t, "q.csv", "age,city,const,weight\n20,Oslo,1,5\n"))
	if _, err := extra.Encode(background, fitted(t, train, nil, data.EncodingOptions{IgnoreExtra: true})); err != nil {
		t.Error(err)
	}
}

func TestColumnsByPosition(t *testing.T) {
	train := opened(t, Options{Target: []string{"1"}}, file(t, "p.csv", "1,2,7\n3,4,8\n"))
	e := fitted(t, train, nil, data.EncodingOptions{KeepInputs: true, KeepTargets: true, Task: data.Regression})
	all, _ := pairs(t, applied(t, e, train))
	inputs := opened(t, Options{}, file(t, "q.csv", "2,7\n4,8\n"))
	some, y := pairs(t, applied(t, e, inputs))
	if diff := cmp.Diff(all, some); diff != "" || len(y) != 0 {
		t.Error(diff, y)
	}
	_, err := opened(t, Options{}, file(t, "q.csv", "1,2,3,4\n")).Encode(background, e)
	refused(t, "width", err, "there are 4 columns, the model takes 3, or 2 without targets")
	_, err = opened(t, Options{}, file(t, "q.csv", "a,b,c\n1,2,3\n")).Encode(background, e)
	refused(t, "names", err, "by position")
}

func TestMissingValues(t *testing.T) {
	text := "a,b,c,y\n1,x,5,1\n,x,,2\n3,,5,3\n10,z,6,4\n"
	table := opened(t, Options{}, file(t, "m.csv", text))
	_, err := table.FitEncoding(background, nil, data.EncodingOptions{})
	refused(t, "error", err, `row 2 (line 3), column "a"`, "missing")
	for _, c := range []struct {
		way  data.Missing
		a, c float64
	}{{data.FillMean, 14.0 / 3, 16.0 / 3}, {data.FillMedian, 3, 5}, {data.FillMostFrequent, 1, 5}} {
		e := fitted(t, table, nil, data.EncodingOptions{Missing: c.way, KeepInputs: true})
		x, _ := pairs(t, applied(t, e, table))
		if diff := cmp.Diff([][]float64{{1, 1, 0, 5}, {c.a, 1, 0, c.c}, {3, 1, 0, 5}, {10, 0, 1, 6}}, x, near15); diff != "" {
			t.Errorf("%s: %s", c.way, diff)
		}
		want := fmt.Sprintf(`imputed  1 value in "b" by the most frequent value; 2 values in "a", "c" by the %s`, c.way)
		if c.way == data.FillMostFrequent {
			want = `imputed  3 values in "a", "b", "c" by the most frequent value`
		}
		if got := table.Report().Summary(e)[3]; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	target := opened(t, Options{Target: []string{"a"}}, file(t, "m.csv", text))
	_, err = target.FitEncoding(background, nil, data.EncodingOptions{Missing: data.FillMean})
	refused(t, "target", err, `row 2 (line 3), column "a"`, "the target is missing")
	late := fitted(t, table, []int{0, 3}, data.EncodingOptions{})
	_, err = table.Encode(background, late)
	refused(t, "later", err, `row 2 (line 3), column "a"`)
}

func TestClasses(t *testing.T) {
	for _, c := range []struct {
		name, text string
		classes    []string
		y          []float64
	}{
		{"text", "x,y\n1,b\n2,a\n3,b\n", []string{"a", "b"}, []float64{1, -1, 1}},
		{"zero and one", "x,y\n1,1\n2,0\n3,1\n", []string{"0", "1"}, []float64{1, -1, 1}},
		{"three", "x,y\n1,c\n2,a\n3,b\n", []string{"a", "b", "c"}, []float64{-1, -1, 1, 1, -1, -1, -1, 1, -1}},
	} {
		table := opened(t, Options{}, file(t, "c.csv", c.text))
		e := fitted(t, table, nil, data.EncodingOptions{})
		_, y := pairs(t, applied(t, e, table))
		if diff := cmp.Diff(c.classes, e.Classes); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(c.y, y); diff != "" {
			t.Error(diff)
		}
		for i, k := range data.Classes(y, e.Outputs()) {
			if got := e.Class(y[i*e.Outputs() : (i+1)*e.Outputs()]); got != k {
				t.Errorf("class %d, then %d", k, got)
			}
		}
	}
	numbers := opened(t, Options{}, file(t, "c.csv", "x,y\n1,10\n2,9\n3,-1\n"))
	e := fitted(t, numbers, nil, data.EncodingOptions{Task: data.Classification})
	if diff := cmp.Diff([]string{"-1", "9", "10"}, e.Classes); diff != "" {
		t.Error(diff)
	}
	other := opened(t, Options{}, file(t, "c.csv", "x,y\n1,10\n2,7\n3,4\n"))
	_, err := other.Encode(background, e)
	refused(t, "unknown class", err, `row 2, column "y"`, `"7" is not among the classes`)
}

func TestNothingToLearn(t *testing.T) {
	racetest.Alone(t)
	for _, c := range []struct {
		name, text string
		o          Options
		e          data.EncodingOptions
		want       string
	}{
		{"one class", "x,y\n1,a\n2,a\n", Options{}, data.EncodingOptions{}, `one class "a"`},
		{"one value", "x,y\n1,3\n2,3\n", Options{}, data.EncodingOptions{Task: data.Regression}, "one value 3"},
		{"constant inputs", "x,y\n1,3\n1,4\n", Options{}, data.EncodingOptions{}, "all inputs are constant"},
		{"text target", "x,y\n1,a\n2,b\n", Options{}, data.EncodingOptions{Task: data.Regression}, "cannot be regressed on"},
		{"no target", "x,y\n1,a\n2,b\n", Options{NoTarget: true}, data.EncodingOptions{Task: data.Regression}, "needs a target"},
		{"two targets", "x,y,z\n1,2,3\n2,3,4\n", Options{Target: []string{"y", "z"}}, data.EncodingOptions{Task: data.Classification}, "name one"},
		{"way", "x,y\n1,3\n2,4\n", Options{}, data.EncodingOptions{Missing: "zero"}, "to treat missing"},
		{"task", "x,y\n1,3\n2,4\n", Options{}, data.EncodingOptions{Task: "ranking"}, "unknown task"},
		{"unknown", "x,y\n1,3\n2,4\n", Options{}, data.EncodingOptions{Unknown: "guess"}, "way \"guess\" to treat unknown"},
	} {
		_, err := opened(t, c.o, file(t, "n.csv", c.text)).FitEncoding(background, nil, c.e)
		refused(t, c.name, err, c.want)
	}
	table := opened(t, Options{}, file(t, "n.csv", "x,y\n1,3\n2,4\n"))
	for _, rows := range [][]int{{}, {2}, {1, 0}, {-1}} {
		if _, err := table.FitEncoding(background, rows, data.EncodingOptions{}); err == nil {
			t.Errorf("rows %v: no error", rows)
		}
	}
	var text strings.Builder
	for i := range MaxLevels + 1 {
		text.WriteString("id" + formatNumber(float64(i)) + "," + formatNumber(float64(i)) + "\n")
	}
	ids := opened(t, Options{}, file(t, "i.csv", text.String()))
	_, err := ids.FitEncoding(background, nil, data.EncodingOptions{})
	refused(t, "identifiers", err, `"column 1" has more than 10000 different texts`, "drop it")
}

// Extreme numbers neither overflow nor divide by zero.
func TestScaleExtremes(t *testing.T) {
	for _, text := range []string{
		"1.7e308,1\n-1.7e308,2\n1.7e308,5\n", "5e-324,1\n0,2\n1e-323,3\n", "1e-200,1\n2e-200,2\n3e-200,3\n", "1e308,1\n1.1e308,2\n1.2e308,3\n",
	} {
		table := opened(t, Options{}, file(t, "s.csv", text))
		x, _ := pairs(t, applied(t, fitted(t, table, nil, data.EncodingOptions{Task: data.Regression}), table))
		for _, row := range x {
			if !(math.Abs(row[0]) < 3) {
				t.Errorf("%q: %v", text, x)
			}
		}
	}
}

func TestSparseEncoding(t *testing.T) {
	table := opened(t, Options{}, file(t, "s.svm", "1 1:4 2:3\n-1 2:3\n1 1:2 2:3 3:1\n-1\n"))
	e := fitted(t, table, []int{0, 1, 2}, data.EncodingOptions{})
	src := applied(t, e, table)
	if _, sparse := src.(*data.Memory).Rows().(*kernel.CSR[float64]); !sparse {
		t.Fatalf("%T", src.(*data.Memory).Rows())
	}
	x, y := pairs(t, src)
	s1, s3 := math.Sqrt(8.0/3), math.Sqrt(2.0/9) // of 4, 0, 2 and of 0, 0, 1
	if diff := cmp.Diff([][]float64{{4 / s1, 3, 0}, {0, 3, 0}, {2 / s1, 3, 1 / s3}, {0, 0, 0}}, x, near15); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]float64{1, -1, 1, -1}, y); diff != "" {
		t.Error(diff)
	}
	narrow := applied(t, e, opened(t, Options{}, file(t, "t.svm", "1 1:4\n")))
	if narrow.Dim() != 3 {
		t.Errorf("%d features", narrow.Dim())
	}
	_, err := opened(t, Options{}, file(t, "t.svm", "1 9:4\n")).Encode(background, e)
	refused(t, "wide", err, "feature 9 is beyond the 3 of the model")
	_, err = opened(t, Options{}, file(t, "t.csv", "1,2,3\n")).Encode(background, e)
	refused(t, "dense", err, "sparse rows")
}

// An encoding is equal after a round trip through JSON.
func TestEncodingJSON(t *testing.T) {
	table := opened(t, Options{}, file(t, "p.csv", people))
	e := fitted(t, table, nil, data.EncodingOptions{Missing: data.FillMedian})
	text, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	var back data.Encoding
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(e, &back); diff != "" {
		t.Error(diff)
	}
	for _, c := range [][2]string{
		{`"version":1`, `"version":2`},
		{`"scale":`, `"scale":-`},
		{`"task":"regression"`, `"task":"x"`},
		{`"kind":"numeric"`, `"kind":"text"`},
		{`"fill":1`, `"fill":7`},
	} {
		broken := strings.Replace(string(text), c[0], c[1], 1)
		if broken == string(text) {
			t.Errorf("%q is not in %s", c[0], text)
		} else if json.Unmarshal([]byte(broken), &back) == nil {
			t.Errorf("%q was accepted", c[1])
		}
	}
}

// Numbers with a comma can be categories on request, and other texts with commas are
// not numbers.
func TestCommasThatAreNone(t *testing.T) {
	for text, o := range map[string]Options{
		"a;y\n1,5;1\n2,5;2\n1,5;3\n": {Categorical: []string{"a"}},
		"a;y\n1,x;1\n2,5;2\n1,5;3\n": {},
		"a;y\n1,;1\n2,5;2\n1,5;3\n":  {},
		"a;y\n1,5,5;1\n2,5;2\n":      {},
	} {
		if c := opened(t, o, file(t, "a.csv", text)).Report().Columns[0]; c.Kind != data.Categorical {
			t.Errorf("%q: the column is %s", text, c.Kind)
		}
	}
}

// Texts that identify rows cause a note, and ordinary categories do not.
func TestManyTextsAreRemarkedOn(t *testing.T) {
	for _, c := range []struct {
		rows, levels int
		want         bool
	}{{100, 100, true}, {100, 51, true}, {100, 50, false}, {15, 15, false}, {1000, 60, false}} {
		var b strings.Builder
		b.WriteString("name,x,y\n")
		for i := range c.rows {
			fmt.Fprintf(&b, "n%d,%d,%d\n", i%c.levels, i*i%17, i%13)
		}
		e, err := opened(t, Options{}, file(t, "a.csv", b.String())).FitEncoding(context.Background(), nil, data.EncodingOptions{})
		if err != nil {
			t.Fatal(err)
		}
		notes := strings.Join(e.Notes, "\n")
		if got := strings.Contains(notes, fmt.Sprintf(`input "name" has %d different texts in %d rows`, c.levels, c.rows)); got != c.want || !c.want && notes != "" {
			t.Errorf("%d levels in %d rows: %q", c.levels, c.rows, notes)
		}
	}
}

// Errors for one row and for constant inputs differ.
func TestConstantInputsOfOneRow(t *testing.T) {
	for text, want := range map[string]string{
		"a,b,y\n1,2,3\n":        "constant over the 1 training row",
		"a,b,y\n1,2,3\n1,2,4\n": "constant over the 2 training rows",
	} {
		_, err := opened(t, Options{}, file(t, "a.csv", text)).FitEncoding(context.Background(), nil, data.EncodingOptions{Task: data.Unlabelled})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%q: %v; want %q", text, err, want)
		}
	}
}

// Single precision is that of inputs, and does not lose differences beside large numbers.
func TestSinglePrecisionBesideLargeNumbers(t *testing.T) {
	for _, text := range []string{
		"1000000000.25,1\n1000000000.5,2\n1000000000.75,5\n", "-1e15,1\n-1000000000000001,2\n-1000000000000002,4\n", "2024-02-29 12:00:01,1\n2024-02-29 12:00:02,2\n2024-02-29 12:00:03,3\n",
	} {
		path := file(t, "l.csv", text)
		double := opened(t, Options{Delimiter: ','}, path)
		e := fitted(t, double, nil, data.EncodingOptions{Task: data.Regression})
		want, _ := pairs(t, applied(t, e, double))
		for _, o := range []Options{{Float32: true}, {ChunkFile: path + ".chunks"}} {
			o.Delimiter = ','
			single := opened(t, o, path)
			if _, err := single.FitEncoding(background, nil, data.EncodingOptions{Task: data.Regression, KeepInputs: true}); err == nil || !strings.Contains(err.Error(), "single precision cannot tell apart") {
				t.Errorf("%q, inputs kept: %v", text, err)
			}
			x, _ := pairs(t, applied(t, fitted(t, single, nil, data.EncodingOptions{Task: data.Regression}), single))
			for i := range x {
				if math.Abs(x[i][0]-want[i][0]) > 1e-6 {
					t.Errorf("%q: %v, want %v", text, x, want)
				}
			}
		}
	}
}

// Cells of any format are kept as texts, with the rows that are left, whether their column is
// read too or not.
func TestKept(t *testing.T) {
	text := "id,a,w,y\n007,1.50,1,1\n8,?,0,2\n,3,1,3\n"
	records := `[{"id":"007","a":1.50,"w":1,"y":1},{"id":"8","a":"?","w":0,"y":2},{"id":null,"a":3,"w":1,"y":3}]`
	for name, path := range map[string]string{"csv": file(t, "k.csv", text), "json": file(t, "k.json", records)} {
		for _, drop := range [][]string{nil, {"id"}} {
			table := opened(t, Options{Keep: []string{"a", "id"}, Drop: drop, Weights: "w"}, path)
			got := table.Kept()
			if len(got) != 2 || got[0].Name != "a" || !slices.Equal(got[0].Cells, []string{"1.50", "3"}) || !slices.Equal(got[1].Cells, []string{"007", ""}) {
				t.Errorf("%s without %q: %+v", name, drop, got)
			}
		}
	}
	table := opened(t, Options{Keep: []string{"u64", "i64", "dec32", "date", "bool", "text", "f32"}, Target: []string{"f32"}}, "testdata/types.parquet")
	var got []string
	for _, k := range table.Kept() {
		got = append(got, strings.Join(k.Cells, "|"))
	}
	if diff := cmp.Diff([]string{"9223372036854775808|18446744073709549568|", "-4611686018427387904|4611686018427387904|", "-1.2345|99999.9999|", "1969-12-31|2024-02-29|", "true|false|", "a|b|", "0.5|-2|"}, got); diff != "" {
		t.Error(diff)
	}
}
