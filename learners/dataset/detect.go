package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"strings"
)

// detectFormat detects the format of a file from its first bytes, then from its name.
func detectFormat(path string, head []byte) (Format, string) {
	switch {
	case bytes.HasPrefix(head, []byte("\x93NUMPY")):
		return NPY, "it starts as a NumPy array"
	case bytes.HasPrefix(head, []byte("PK\x03\x04")), bytes.HasPrefix(head, []byte("PK\x05\x06")):
		return NPZ, "it starts as a zip archive"
	case bytes.HasPrefix(head, []byte("PAR1")):
		return Parquet, "it starts with PAR1"
	case bytes.HasPrefix(head, []byte(chunkMagic)):
		return Chunks, "it starts as a chunk file"
	case len(head) >= 4 && head[0] == 0 && head[1] == 0 && idxSize(head[2]) > 0 && head[3] > 0:
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

// looksLibSVM reports whether all of the first lines have the form "label index:value
// …". Lines with only a label are allowed.
func looksLibSVM(head []byte) bool {
	features := 0
	for _, line := range firstLines(head, 20) {
		line, _, _ = bytes.Cut(line, []byte("#"))
		for i, f := range splitSpace(nil, line) {
			if i == 0 {
				continue
			}
			index, value, ok := bytes.Cut(f, []byte(":"))
			if !ok || len(index) == 0 || !digits(index) {
				return false
			}
			if _, err := parseNumber(value); err != nil {
				return false
			}
			features++
		}
	}
	return features > 0
}

func digits(s []byte) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return true
}

// firstLines returns at most max lines of head that are not empty, without a last one
// that is incomplete.
func firstLines(head []byte, max int) [][]byte {
	var lines [][]byte
	for len(lines) < max && len(head) > 0 {
		line, rest, ended := bytes.Cut(head, []byte("\n"))
		if !ended && len(lines) > 0 {
			break
		}
		if line = bytes.TrimRight(line, "\r"); len(trim(line)) > 0 {
			lines = append(lines, line)
		}
		head = rest
	}
	return lines
}

// sample returns a reader of the records in the first lines.
func sample(head []byte, delim byte, max int) *records {
	var text bytes.Buffer
	for _, line := range firstLines(head, max) {
		text.Write(line)
		text.WriteByte('\n')
	}
	return newRecords(bufio.NewReader(&text), delim)
}

// sampleWidth returns the number of fields of the first records, 0 if they
// differ.
func sampleWidth(head []byte, delim byte, max int) int {
	d := sample(head, delim, max)
	width := 0
	for {
		fields, err := d.read()
		switch {
		case err != nil:
			return width
		case width == 0:
			width = len(fields)
		case len(fields) != width:
			return 0
		}
	}
}

// sampleRecords splits the first lines with a delimiter, up to an error.
func sampleRecords(head []byte, delim byte, max int) [][]string {
	d := sample(head, delim, max)
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
// chosen. Of equals, a comma comes first and white space last.
func detectDelimiter(head []byte) (byte, string) {
	best, most := byte(','), 1
	for _, delim := range []byte{',', '\t', ';', '|', Whitespace} {
		fields := sampleWidth(head, delim, 20)
		if fields > most && (delim != Whitespace || most == 1) {
			best, most = delim, fields
		}
	}
	if most > 1 {
		return best, fmt.Sprintf("it cuts each of the first lines into %d fields", most)
	}
	// No delimiter does. With the commonest one the error can name the bad row.
	lines := firstLines(head, 20)
	for _, delim := range []byte{',', '\t', ';', '|'} {
		hits := 0
		for _, l := range lines {
			if bytes.IndexByte(l, delim) >= 0 {
				hits++
			}
		}
		if 2*hits > len(lines) {
			return delim, "it occurs in most of the first lines"
		}
	}
	return ',', "there is one column"
}

// detectHeader decides whether the first record holds names.
func detectHeader(recs [][]string, missing missingSet) (bool, string) {
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
	for c := range recs[0] {
		if numericBelow(recs[1:], c, missing) {
			return true, fmt.Sprintf("%q stands above numbers", recs[0][c])
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
	if len(recs) < 10 {
		return false, "the first record is text, and so are the others"
	}
	return true, "no text of the first record occurs again below it"
}

// numericBelow reports whether field c is a number or missing in all records, and a
// number in at least one.
func numericBelow(recs [][]string, c int, missing missingSet) bool {
	numbers := 0
	for _, r := range recs {
		if c >= len(r) {
			return false
		}
		if missing.has([]byte(r[c])) {
			continue
		}
		if _, err := parseNumber([]byte(r[c])); err != nil {
			return false
		}
		numbers++
	}
	return numbers > 0
}
