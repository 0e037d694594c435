package dataset

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/bkbtuner/bkb/learners/data"
)

// Decode inverts the encoding of targets, and z-scores have mean 0 and variance 1.
func TestEncodeDecode(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(3, 40).Draw(rt, "n")
		number := rapid.Float64Range(-1e6, 1e6)
		var text strings.Builder
		want := make([]float64, n)
		text.WriteString("a,y\n0,0\n1,1\n")
		for i := range want {
			want[i] = number.Draw(rt, "y")
			fmt.Fprintf(&text, "%v,%v\n", number.Draw(rt, "a"), want[i])
		}
		table := opened(t, Options{}, writeIn(t, dir, text.String()))
		e := fitted(t, table, nil, data.EncodingOptions{Task: data.Regression})
		text2, err := json.Marshal(e)
		var back data.Encoding
		if err != nil || json.Unmarshal(text2, &back) != nil || !cmp.Equal(e, &back) {
			rt.Fatalf("JSON: %v", err)
		}
		x, y := pairs(t, applied(t, &back, table))
		sum, squares := 0.0, 0.0
		for _, row := range x {
			sum += row[0]
			squares += row[0] * row[0]
		}
		if k := float64(len(x)); math.Abs(sum/k) > 1e-9 || math.Abs(squares/k-1) > 1e-9 {
			rt.Fatalf("mean %v, variance %v", sum/k, squares/k)
		}
		back.Decode(y)
		for i, v := range want {
			if math.Abs(y[i+2]-v) > 1e-9*(1+math.Abs(v)+e.Targets[0].Scale) {
				rt.Fatalf("target %v came back as %v", v, y[i+2])
			}
		}
	})
}

// The lower median is compared with sorting, over all bits of float64.
func TestMedian(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.SliceOfN(rapid.Float64(), 1, 50).Draw(t, "values")
		s := selection{sum: float64(len(v)) / 2, counts: make([]float64, 1<<16)}
		for range 4 {
			for _, x := range v {
				s.add(x, 1)
			}
			s.step()
		}
		slices.Sort(v)
		if got := unordered(s.prefix); got != v[(len(v)-1)/2] {
			t.Fatalf("%v of %v", got, v)
		}
	})
}

// Numbers read as strconv reads them.
func TestParseNumberLikeStrconv(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64().Draw(t, "v")
		format := rapid.SampledFrom([]byte{'g', 'e', 'f'}).Draw(t, "format")
		text := strconv.FormatFloat(v, format, rapid.IntRange(-1, 25).Draw(t, "digits"), 64)
		want, err := strconv.ParseFloat(text, 64)
		got, err2 := parseNumber([]byte(text))
		if (err == nil) != (err2 == nil) || err == nil && math.Float64bits(got) != math.Float64bits(want) {
			t.Fatalf("%q: %v (%v), strconv %v (%v)", text, got, err2, want, err)
		}
	})
}

// The output of encoding/csv is read back.
func TestRecordsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		field := rapid.StringOf(rapid.SampledFrom([]rune("ab \",;\n\t'é")))
		width := rapid.IntRange(2, 5).Draw(t, "width")
		var want [][]string
		for range rapid.IntRange(1, 6).Draw(t, "rows") {
			want = append(want, rapid.SliceOfN(field, width, width).Draw(t, "row"))
		}
		var b strings.Builder
		csv.NewWriter(&b).WriteAll(want)
		got, err := readAllRecords(b.String())
		if err != nil || !cmp.Equal(got, want) {
			t.Fatalf("%v\n%q\n%q", err, got, want)
		}
	})
}

func readAllRecords(text string) ([][]string, error) {
	d := newRecords(bufio.NewReaderSize(strings.NewReader(text), 16), ',')
	var out [][]string
	for {
		fields, err := d.read()
		if err != nil {
			if err.Error() == "EOF" {
				err = nil
			}
			return out, err
		}
		rec := make([]string, len(fields))
		for i, f := range fields {
			rec[i] = string(f)
		}
		out = append(out, rec)
	}
}
