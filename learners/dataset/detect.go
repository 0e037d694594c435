package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/learners/data"
)

// detectFormat detects the format of a file from its first bytes, then from its name.
func detectFormat(path string, head []byte) (Format, string) {
	for _, f := range []struct {
		magic, why string
		format     Format
	}{
		{"\x93NUMPY", "it starts as a NumPy array", NPY},
		{"PK\x03\x04", "it starts as a zip archive", NPZ},
		{"PK\x05\x06", "it starts as a zip archive", NPZ},
		{"PAR1", "it starts with PAR1", Parquet},
		{chunkMagic, "it starts as a chunk file", Chunks},
	} {
		if bytes.HasPrefix(head, []byte(f.magic)) {
			return f.format, f.why
		}
	}
	switch {
	case jsonStart.Match(head):
		return JSON, "it starts with a record of JSON"
	case len(head) >= 4 && head[0] == 0 && head[1] == 0 && idxTypes[head[2]].size > 0 && head[3] > 0:
		return IDX, "it starts as an IDX file"
	}
	name := strings.TrimSuffix(strings.ToLower(path), ".gz")
	for _, ext := range []string{".libsvm", ".svm", ".svmlight"} {
		if strings.HasSuffix(name, ext) {
			return LibSVM, "its name ends in " + ext
		}
	}
	if looksLibSVM(head) {
		return LibSVM, "its lines read \"label index:value …\""
	}
	return CSV, "it is text"
}

var jsonStart = regexp.MustCompile(`^(\xef\xbb\xbf)?\s*\[?\s*\{\s*["}]`)

// looksLibSVM reports whether all of the first lines have the form "label index:value
// …". Lines with only a label are allowed.
func looksLibSVM(head []byte) bool {
	features := 0
	for _, line := range firstLines(head, 20) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		for i, f := range bytes.Fields(line) {
			index, value, ok := bytes.Cut(f, []byte(":"))
			_, err := parseNumber(value)
			switch {
			case i == 0:
			case !ok || len(index) == 0 || !digits(index) || err != nil:
				return false
			default:
				features++
			}
		}
	}
	return features > 0
}

func digits(s []byte) bool { return len(bytes.Trim(s, "0123456789")) == 0 }

// headOf returns the start of a file, without a last line that it does not hold all of.
func headOf(r *bufio.Reader) []byte {
	head, err := r.Peek(r.Size())
	if i := bytes.LastIndexByte(head, '\n'); err == nil && i >= 0 {
		return head[:i+1]
	}
	return head
}

// firstLines returns at most max lines of head that are not empty.
func firstLines(head []byte, max int) [][]byte {
	var lines [][]byte
	for len(lines) < max && len(head) > 0 {
		line, rest, _ := bytes.Cut(head, []byte("\n"))
		if line = bytes.TrimRight(line, "\r"); len(trim(line)) > 0 {
			lines = append(lines, line)
		}
		head = rest
	}
	return lines
}

// sampleWidth returns the number of fields of the first records, 0 if they differ.
func sampleWidth(head []byte, delim byte, max int) int {
	recs := sampleRecords(head, delim, max)
	if len(recs) == 0 || slices.ContainsFunc(recs, func(r []string) bool { return len(r) != len(recs[0]) }) {
		return 0
	}
	return len(recs[0])
}

// sampleRecords splits the first lines with a delimiter, up to an error.
func sampleRecords(head []byte, delim byte, max int) [][]string {
	d := newRecords(bufio.NewReader(bytes.NewReader(bytes.Join(firstLines(head, max), []byte("\n")))), delim)
	var out [][]string
	for {
		fields, err := d.read()
		if err != nil {
			return out
		}
		rec := make([]string, len(fields))
		for i, f := range fields {
			rec[i] = string(trim(f))
		}
		out = append(out, rec)
	}
}

// detectDelimiter returns the delimiter that splits each of the first lines into the
// same number of fields, at least two. If several do, the one with the most fields is
// chosen. Of equals, a comma comes first and white space last. A comma is none if it is
// decimal, which it also is where another delimiter cuts lines into numbers.
func detectDelimiter(head []byte, comma bool) (byte, string) {
	delimiters := []byte{',', '\t', ';', '|', Whitespace}
	best, most := byte(','), 1
	comma = comma || slices.ContainsFunc([]byte(";\t|"), func(delim byte) bool {
		return sampleWidth(head, delim, 20) > 1 && allNumbers(sampleRecords(head, delim, 20))
	})
	for _, delim := range delimiters {
		fields := sampleWidth(head, delim, 20)
		if fields > most && (delim != Whitespace || most == 1) && !(comma && delim == ',') {
			best, most = delim, fields
		}
	}
	if most > 1 {
		return best, fmt.Sprintf("it cuts each of the first lines into %d fields", most)
	}
	// No delimiter does. With the commonest one the error can name the bad row, as with one that
	// cuts all lines but the first, where rows have names and the header has none for them.
	lines := firstLines(head, 20)
	for _, delim := range delimiters {
		if len(lines) < 2 {
			break
		}
		if n := sampleWidth(bytes.Join(lines[1:], []byte("\n")), delim, 20); n > 2 && sampleWidth(lines[0], delim, 1) == n-1 {
			return delim, "it cuts each of the first lines but the first into " + count(n, "field")
		}
	}
	for _, delim := range delimiters[:4] {
		hits := 0
		for _, l := range lines {
			hits += min(1, bytes.Count(l, []byte{delim}))
		}
		if 2*hits > len(lines) {
			return delim, "it occurs in most of the first lines"
		}
	}
	return ',', "there is one column"
}

// allNumbers reports whether records have only numbers, with decimal points or commas.
func allNumbers(recs [][]string) bool {
	pointed(recs)
	for c := range recs[0] {
		if !numericBelow(recs, c, missingSet{auto: true}) {
			return false
		}
	}
	return true
}

// commaNumber is a number with a decimal comma, which in commaThousands may as well be one
// between thousands.
var (
	commaNumber    = regexp.MustCompile(`^[-+]?\d*,\d+([eE][-+]?\d+)?$`)
	commaThousands = regexp.MustCompile(`^[-+]?[1-9]\d{0,2},\d{3}$`)
)

// decimalCommas reports whether a column has numbers with decimal commas and nothing else, some
// of which cannot have commas between thousands, and no column has fractions with a point.
func decimalCommas(recs [][]string, missing missingSet) bool {
	commas, others := map[int]bool{}, map[int]bool{} // columns
	for i, rec := range recs {
		for c, s := range rec {
			_, err := parseNumber([]byte(s))
			switch {
			case i == 0 && len(recs) > 1, missing.has([]byte(s)): // it may be the header
			case err == nil && strings.Contains(s, "."):
				return false
			case commaNumber.MatchString(s):
				commas[c] = commas[c] || !commaThousands.MatchString(s)
			case err != nil:
				others[c] = true
			}
		}
	}
	for c, sure := range commas {
		if sure && !others[c] {
			return true
		}
	}
	return false
}

// pointed gives numbers with decimal commas a point.
func pointed(recs [][]string) {
	for _, rec := range recs {
		for c, s := range rec {
			if commaNumber.MatchString(s) {
				rec[c] = strings.Replace(s, ",", ".", 1)
			}
		}
	}
}

// detectHeader decides whether the first record holds names.
func (c *csvReader) detectHeader(model *data.Encoding) (bool, string) {
	recs, missing := c.sample, c.missing
	if model != nil && model.Named && len(recs) > 0 {
		for i := range model.Inputs {
			if slices.Contains(recs[0], model.Inputs[i].Name) {
				return true, "it has the columns of the model"
			}
		}
	}
	if len(recs) == 0 {
		return false, "there are no records"
	}
	seen, twice := map[string]bool{}, ""
	for c, name := range recs[0] {
		if _, err := parseNumber([]byte(name)); err == nil {
			return false, fmt.Sprintf("field %d of the first record is a number", c+1)
		}
		if missing.has([]byte(name)) && name != "" {
			return false, fmt.Sprintf("field %d of the first record is a missing value", c+1)
		}
		if seen[name] {
			twice = name
		}
		seen[name] = true
	}
	if len(recs) == 1 && (model == nil || model.Named) {
		return true, "it is the only record, and of text"
	}
	for c := range recs[0] {
		if numericBelow(recs[1:], c, missing) && !decoratedNumber.MatchString(recs[0][c]) {
			return true, fmt.Sprintf("%q stands above numbers", recs[0][c])
		}
		if what := wordsBelow(recs, c, missing); what != "" {
			return true, fmt.Sprintf("%q stands above %s", recs[0][c], what)
		}
	}
	if len(seen) < len(recs[0]) {
		return false, fmt.Sprintf("the first record has %q twice", twice)
	}
	for c, name := range recs[0] {
		for _, r := range recs[1:] {
			if c < len(r) && r[c] == name {
				return false, fmt.Sprintf("%q occurs again below the first record", name)
			}
		}
	}
	return true, "no text of the first record occurs again below it"
}

// wordsBelow returns what field c is below the first record, if that is times or truth values and the
// first record has none.
func wordsBelow(recs [][]string, c int, missing missingSet) string {
	cells, _ := cellsOf(recs[1:], c, missing)
	below, truths := detectWords(cells, "")
	first, truth := detectWords([][]byte{[]byte(recs[0][c])}, "")
	switch {
	case below != nil && first == nil:
		return "times"
	case truths && !truth:
		return "truth values"
	}
	return ""
}

// cellsOf returns the cells of field c that are not missing, and whether all records have it.
func cellsOf(recs [][]string, c int, missing missingSet) (cells [][]byte, all bool) {
	cells, all = [][]byte{}, true
	for _, r := range recs {
		if all = all && c < len(r); c < len(r) && !missing.has([]byte(r[c])) {
			cells = append(cells, []byte(r[c]))
		}
	}
	return cells, all
}

// numericBelow reports whether field c is a number, perhaps with a currency or the like, or
// missing in all records, and a number in at least one.
func numericBelow(recs [][]string, c int, missing missingSet) bool {
	cells, all := cellsOf(recs, c, missing)
	return all && len(cells) > 0 && !slices.ContainsFunc(cells, func(s []byte) bool {
		_, err := parseNumber(s)
		return err != nil && !decoratedNumber.Match(s)
	})
}
