package dataset

import (
	"archive/zip"
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Records of JSON are read in an array and one after the other, as pandas and DuckDB
// write them.
func TestJSON(t *testing.T) {
	want := [][]float64{{1.5, 0, 1709164800, 1, -999}, {-2e3, 1, -86400, 0, 3}, {-999, 0, 1709164800, 1, 4}}
	for name, text := range map[string]string{
		"array":   "[{\"a\":1.5,\"b\":\"x\",\"c\":\"2024-02-29\",\"d\":true,\"e\":null},\n {\"c\":\"1969-12-31\",\"a\":-2e3,\"b\":\"y\",\"d\":false,\"e\":3},{\"b\":\"x\",\"c\":\"2024-02-29\",\"d\":true,\"e\":4}]\n",
		"lines":   "{\"a\":1.5,\"b\":\"x\",\"c\":\"2024-02-29\",\"d\":true,\"e\":null}\n{\"c\":\"1969-12-31\",\"a\":-2e3,\"b\":\"y\",\"d\":false,\"e\":3}\n\n{\"a\":null,\"b\":\"x\",\"c\":\"2024-02-29\",\"d\":true,\"e\":4}",
		"no gaps": " {\"a\":1.5,\"b\":\"x\",\"c\":\"2024-02-29\",\"d\":true,\"e\":\"\"}{\"c\":\"1969-12-31\",\"a\":-2e3,\"b\":\"y\",\"d\":false,\"e\":3}{\"b\":\"x\",\"c\":\"2024-02-29\",\"d\":true,\"e\":4}",
	} {
		table := opened(t, Options{}, file(t, "x.json", text))
		if diff := cmp.Diff(want, cells(t, table)); diff != "" || names(table.Columns()) != "a b c d e" {
			t.Errorf("%s: %s %s", name, names(table.Columns()), diff)
		}
	}
	for text, want := range map[string]string{
		"[{\"a\":1,\"b\":[1]}]":                       `value of "b" is nested; only numbers, texts, true, false and null can be read; pandas writes them by to_json(orient="records")`,
		"{\"a\":1}\n{\"a\":2,\"z\":3}":                `row 2 (line 2): the key "z" is not in the first record`,
		"{\"a\":1,\"b\":2}\n{\"a\":1,\"b\":":          "at byte",
		"[{\"a\":1,\"b\":2},5]":                       "is not a record",
		"{\"a\":{\"0\":1,\"1\":2}}":                   `pandas writes them by to_json(orient="records")`,
		"{\"a\":1}\n\n{\"a\":3}\nnope\n":              "in line 4, at byte 17",
		"[{\"a\":1},\n {\"a\":3},\n 5]":               "in line 3, at byte",
		"[\n{\"a\":1},\n{\"a\":2},\n{\n\"a\":\"w\"}]": `row 3 (line 4), column "a": "w" is not a number`,
		"[{\"a\":1,\"b\":2},{\"a\":\"w\",\"b\":2}]":   `"w" is not a number`,
		"{}": "column",
	} {
		_, err := Open(background, Options{}, file(t, "x.json", text))
		refused(t, text, err, want)
	}
}

// What is not read is refused by name, with the way out.
func TestRefusedByName(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range []string{"[Content_Types].xml", "xl/workbook.xml"} {
		if _, err := z.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	z.Close()
	_, err := Open(background, Options{}, file(t, "x.xlsx", b.String()))
	refused(t, "xlsx", err, "Excel workbook", "save the sheet as CSV")
	for _, address := range []string{"https://example.com/x.csv", "s3://bucket/x.parquet"} {
		_, err := Open(background, Options{}, address)
		refused(t, address, err, address, "download")
	}
}
