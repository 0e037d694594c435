package dataset

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file writes text to a file of the test and returns its path.
func file(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// opened opens a file and fails the test on an error.
func opened(t testing.TB, o Options, paths ...string) *Table {
	t.Helper()
	table, err := Open(context.Background(), o, paths...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { table.Close() })
	return table
}

// The message of every mistake leads to the place and the remedy.
func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		name, file, text string
		o                Options
		want             []string // all of them in the message
	}{
		{"ragged", "a.csv", "a,b\n1,2\n\n3,4,5\n", Options{}, []string{"row 2 (line 4)", "3 fields", "have 2"}},
		{"ragged quoted", "a.csv", "a,b\n\"1\n\",2\n3\n", Options{Header: HeaderYes}, []string{"row 2 (line 4)", "1 field,"}},
		{"text in numbers", "a.csv", "a,b\n1,2\nabc,4\n5,6\n7,8\n", Options{}, []string{`row 2 (line 3), column "a": "abc" is not a number`, "3 numbers and 1 text", "Missing", "Categorical"}},
		{"number in texts", "a.csv", "a,b\nx,2\ny,4\n5,6\n", Options{Header: HeaderYes}, []string{`row 3 (line 4), column "a": "5" is a number among texts`, "Categorical"}},
		{"infinite", "a.csv", "1,2\n3,-Inf\n", Options{}, []string{`row 2 (line 2), column "column 2": "-Inf" is infinite`}},
		{"too large", "a.csv", "1,2\n3,1e999\n", Options{}, []string{`"1e999" is too large`}},
		{"too large for float32", "a.csv", "1,2\n3,1e39\n", Options{Float32: true}, []string{"1e+39 is too large for a number of 32 bits"}},
		{"hexadecimal", "a.csv", "1,2\n3,0x10\n5,6\n", Options{}, []string{`"0x10" is not a number`}},
		{"underscore", "a.csv", "1,2\n3,1_0\n5,6\n", Options{}, []string{`"1_0" is not a number`}},
		{"target", "a.csv", "width,height,price\n1,2,3\n", Options{Target: []string{"prise"}}, []string{`target "prise" is not a column`, `did you mean "price"`}},
		{"target far off", "a.csv", "width,height,price\n1,2,3\n", Options{Target: []string{"zzzzzzzz"}}, []string{`the columns are "width", "height", "price"`}},
		{"target twice", "a.csv", "a,b,c\n1,2,3\n", Options{Target: []string{"a", "1"}}, []string{"named twice"}},
		{"target position", "a.csv", "1,2,3\n4,5,6\n", Options{Target: []string{"4"}}, []string{`target "4" is not a column`}},
		{"target dropped", "a.csv", "a,b\n1,2\n", Options{Target: []string{"a"}, Drop: []string{"a"}}, []string{"is dropped"}},
		{"weights", "a.csv", "a,w,b\n1,2,3\n", Options{Weights: "v"}, []string{`weights "v" is not a column`}},
		{"weights dropped", "a.csv", "a,w,b\n1,2,3\n", Options{Weights: "w", Drop: []string{"w"}}, []string{`"w" has the weights`, "dropped"}},
		{"weights as target", "a.csv", "a,w,b\n1,2,3\n", Options{Weights: "w", Target: []string{"w"}}, []string{`"w" has the weights`, "target"}},
		{"negative weight", "a.csv", "a,w,b\n1,2,3\n1,-1,3\n", Options{Weights: "w"}, []string{`row 2 (line 3), column "w": the weight of the row is -1`, "≥ 0"}},
		{"missing weight", "a.csv", "a,w,b\n1,2,3\n1,,3\n", Options{Weights: "w"}, []string{`row 2 (line 3), column "w": the weight of the row is missing`}},
		{"text as weight", "a.csv", "a,w,b\n1,2,3\n1,x,3\n", Options{Weights: "w"}, []string{`row 2 (line 3), column "w": "x" is not a number`}},
		{"libsvm weights", "a.svm", "1 1:1\n", Options{Weights: "1"}, []string{"no named columns", "Weights"}},
		{"all dropped", "a.csv", "a,b\n1,2\n", Options{Drop: []string{"a", "b"}}, []string{"every column is dropped"}},
		{"no inputs", "a.csv", "a,b\n1,2\n", Options{Target: []string{"a", "b"}}, []string{"no column left"}},
		{"names twice", "a.csv", "a,a\n1,2\n", Options{Header: HeaderYes}, []string{"columns 1 and 2", `"a"`}},
		{"names twice, detected", "a.csv", "a,a,b\n1,2,x\n2,3,y\n", Options{}, []string{"columns 1 and 2", `"a"`, "correct the first line", "no header"}},
		{"decimal comma", "a.csv", "a;b\n1,5;2\n-2,25;3\n1.000,5;4\n", Options{}, []string{`row 1 (line 2), column "a": "1,5" is no number for its comma`, "decimal point", "Categorical"}},
		{"decimal comma after points", "a.csv", "a;b\n3.5;2\n2;3\n1;4\n4,5;1\n", Options{}, []string{`row 4 (line 5), column "a": "4,5" is no number for its comma`, "Decimal"}},
		{"thousands", "a.csv", "a,b\n\"6,776.88\",2\n\"1,000.5\",3\n", Options{}, []string{`row 1 (line 2), column "a": "6,776.88" is no number for its comma`, "between thousands"}},
		{"thousands with points", "a.csv", "a;b\n1,5;2,5\n1.776,88;3\n", Options{Decimal: ','}, []string{`row 2 (line 3), column "a": "1.776,88" is no number for its comma`, "between thousands and no signs of currency or per cent, or name"}},
		{"currency", "a.csv", "a,b\n$5,2\n$6.5,3\n", Options{}, []string{`row 1 (line 2), column "a": "$5" is no number for its sign`, "currency"}},
		{"per cent", "a.csv", "a,b\n1,2\n31%,3\n", Options{}, []string{`row 2 (line 3), column "a": "31%" is no number for its sign`, "per cent"}},
		{"minus behind", "a.csv", "a,b\n3.5-,2\n4,3\n", Options{}, []string{`row 1 (line 2), column "a": "3.5-" is no number for its sign`, "decimal point"}},
		{"thousands or decimals", "a.csv", "10;970\n11;1,067\n12;1,164\n", Options{}, []string{`row 2 (line 2), column "column 2": "1,067" could be 1.067 with a decimal comma or 1067 with one between thousands`, "set Decimal", "without commas"}},
		{"thousands or decimals, tabs", "a.csv", "b\ta\n11\t1,067\n\n12\t-1,164\n", Options{}, []string{`row 1 (line 2), column "a": "1,067" could be 1.067`}},
		{"thousands or decimals, tabs alone", "a.csv", "11\t1,067\n12\t1,164\n", Options{}, []string{`column 2": "1,067" could be 1.067`}},
		{"thousands or decimals, quoted", "a.csv", "a,b\n\"1,067\",2\n\"1,164\",3\n", Options{}, []string{`row 1 (line 2), column "a": "1,067" could be 1.067`}},
		{"thousands with a decimal point asked", "a.csv", "a;b\n1,067;2\n", Options{Decimal: '.'}, []string{`row 1 (line 2), column "a": "1,067" is no number for its comma`, "no signs of currency or per cent, or name"}},
		{"total of texts", "a.csv", "a,b,c\nx,1.5,2\ny,2,\nx,3,4\nTotal,6.5,\n", Options{}, []string{`row 4 (line 5), column "a": the row "Total" sums up the others; remove it`}},
		{"total of a dropped column", "a.csv", "a;b;c\n\nx;1,5;2\ny;2;3\n Grand Total: ;3,50;5\n", Options{Drop: []string{"a"}}, []string{`row 3 (line 5), column "a": the row "Grand Total:" sums up`}},
		{"total behind numbers", "a.json", "[{\"b\":1,\"a\":\"x\"},\n{\"b\":1,\"a\":\"y\"},\n{\"b\":2,\"a\":\"SUMME\"}]", Options{}, []string{`row 3 (line 3), column "a": the row "SUMME" sums up`}},
		{"total", "a.csv", "a,b\n1,2\n2,3\n3,4\nTotal,9\n", Options{}, []string{`row 4 (line 5), column "a": "Total" is not a number`, "sums up the others"}},
		{"header alone", "a.csv", "a,b,y\n", Options{Target: []string{"y"}}, []string{"no rows"}},
		{"day after months", "a.csv", "when,y\n" + strings.Repeat("1/2/2024,1\n", 300) + "13/2/2024,2\n", Options{}, []string{`row 301 (line 302), column "when"`, "month/day/year", "DayFirst"}},
		{"hidden name", "a.csv", "a\u202e,b\n1,2\n", Options{Header: HeaderYes}, []string{"cannot be shown"}},
		{"long name", "a.csv", strings.Repeat("n", 129) + ",b\n1,2\n", Options{}, []string{"129 bytes", "128"}},
		{"empty", "a.csv", "", Options{}, []string{"is empty"}},
		{"header only", "a.csv", "a,b\n", Options{Header: HeaderYes}, []string{"no rows"}},
		{"open quote", "a.csv", "a,b\n1,\"2\n3,4\n", Options{}, []string{"line 2", "never closed"}},
		{"after quote", "a.csv", "a,b\n1,\"2\"3\n", Options{}, []string{"line 2", "after a closing quote"}},
		{"binary", "a.csv", "a,b\n1,\x00\n", Options{}, []string{"byte 6 is zero"}},
		{"not utf-8", "a.csv", "a,b\nx\xff,1\n", Options{Header: HeaderYes}, []string{"row 1 (line 2)", "not UTF-8", "iconv"}},
		{"windows", "a.csv", "a,b\nK\xf6ln,1\n\x80,2\n", Options{}, []string{"row 1 (line 2)", "iconv -f windows-1252 -t utf-8"}},
		{"windows header", "a.csv", "\x93a\x94,b\nx,1\n", Options{}, []string{"column 1 is not UTF-8; convert", "iconv -f windows-1252 -t utf-8"}},
		{"latin1 beside utf-8", "a.csv", "a,b\n\xc3\x84\xe2\x82\xac,1\n\xf6,2\n", Options{}, []string{"row 2 (line 3)", "iconv -f latin1 -t utf-8"}},
		{"utf-16be", "a.csv", "\x00a\x00\n\x001\x00\n", Options{}, []string{"UTF-16 without", "iconv -f utf-16be -t"}},
		{"utf-32le", "a.csv", "a\x00\x00\x00\n\x00\x00\x00", Options{}, []string{"UTF-32 without", "iconv -f utf-32le -t"}},
		{"utf-32be", "a.csv", "\x00\x00\x00a\x00\x00\x00\n", Options{}, []string{"iconv -f utf-32be -t"}},
		{"utf-32 with a mark", "a.csv", "\xff\xfe\x00\x00a\x00\x00\x00\n\x00\x00\x00", Options{}, []string{"text of UTF-32", "iconv -f utf-32 -t utf-8"}},
		{"utf-32 with a mark, big end first", "a.csv", "\x00\x00\xfe\xff\x00\x00\x00a\x00\x00\x00\n", Options{}, []string{"text of UTF-32"}},
		{"gzip", "a.csv.gz", "\x1f\x8b", Options{}, []string{"cannot be decompressed"}},
		{"contradiction", "a.csv", "1,2\n", Options{NoTarget: true, Target: []string{"1"}}, []string{"contradicts"}},
		{"format", "a.csv", "1,2\n", Options{Format: "xls"}, []string{`unknown format "xls"`, "parquet"}},
		{"delimiter", "a.csv", "1,2\n", Options{Delimiter: '.'}, []string{"cannot be a delimiter"}},
		{"libsvm index 0", "a.svm", "1 0:1\n", Options{}, []string{"row 1 (line 1)", `"0:1"`, "ZeroBased"}},
		{"libsvm order", "a.svm", "1 1:1\n-1 3:1 2:1\n", Options{}, []string{"row 2 (line 2)", `"2:1"`, "must increase"}},
		{"libsvm twice", "a.svm", "1 2:1 2:1\n", Options{}, []string{"must increase"}},
		{"libsvm value", "a.svm", "1 2:x\n", Options{}, []string{`"2:x" has a value that is not a number`}},
		{"libsvm nan", "a.svm", "1 2:nan\n", Options{}, []string{"no finite value"}},
		{"libsvm qid", "a.svm", "1 qid:3 2:1\n", Options{}, []string{"ranking"}},
		{"libsvm labels", "a.svm", "1,2 2:1\n", Options{}, []string{"several labels"}},
		{"libsvm features", "a.svm", "1 9:1\n", Options{Features: 8}, []string{"beyond the 8 features"}},
		{"libsvm huge", "a.svm", "1 99999999999999999999:1\n", Options{}, []string{"beyond the 268435456 features"}},
		{"npy", "a.npy", "\x93NUMPY\x01\x00", Options{}, []string{"ends in its header"}},
		{"idx", "a.idx", "\x00\x00\x08\x01\x00\x00\x00\x05ab", Options{}, []string{"ends in row 3 of 5"}},
		{"idx huge", "a.idx", "\x00\x00\x08\x03\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", Options{}, []string{"too large"}},
		{"zip", "a.npz", "PK\x03\x04", Options{}, []string{"not an archive"}},
		{"parquet", "a.parquet", "PAR1xxxxxxxxxxxxxxxPAR1", Options{}, []string{"a.parquet", "longer than the file"}},
		{"chunks", "a.chunks", "BKBCELLS", Options{}, []string{"ends in its header"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Open(context.Background(), c.o, file(t, c.file, c.text))
			if err == nil {
				t.Fatal("no error")
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%q does not say %q", err, w)
				}
			}
		})
	}
	if _, err := Open(context.Background(), Options{}, "/nowhere/x.csv"); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing file: %v", err)
	}
	if _, err := Open(context.Background(), Options{}, t.TempDir()); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("directory: %v", err)
	}
	if _, err := Open(context.Background(), Options{}); err == nil {
		t.Error("no file: no error")
	}
}
