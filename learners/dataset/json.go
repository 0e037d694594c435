package dataset

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bkbtuner/bkb/learners/data"
)

// jsonReader is the rowReader of records of JSON, as an array or one after the other. The columns
// are the keys of the first record. A key that a record lacks, and null, are missing values.
type jsonReader struct {
	file  string
	d     *json.Decoder
	lines lineCounter
	names []string
	array bool
	ahead []jsonRecord // read ahead
	late  error        // that ended them
}

// jsonRecord has the texts of a record by its keys, in their order.
type jsonRecord struct {
	line  int // of its start
	names []string
	texts [][]byte // nil for null
}

func openJSON(file string, r *bufio.Reader) (*jsonReader, error) {
	r = asUTF8(r)
	j := &jsonReader{file: file, lines: lineCounter{r: r}}
	j.d = json.NewDecoder(&j.lines)
	j.d.UseNumber()
	if head := bytes.TrimLeft(headOf(r), " \t\r\n"); len(head) > 0 && head[0] == '[' {
		j.array = true
		if _, err := j.d.Token(); err != nil {
			return nil, j.fault(err)
		}
	}
	for len(j.ahead) < sampleRows && j.late == nil {
		record, err := j.record()
		if j.late = err; err == nil {
			j.ahead = append(j.ahead, record)
		}
	}
	if len(j.ahead) == 0 && j.late == io.EOF {
		return nil, &FileError{File: file, Reason: "it has no rows; give a file with a row of data"}
	} else if len(j.ahead) == 0 {
		return nil, j.fault(j.late)
	}
	var err error
	if n := len(j.ahead[0].names); n > MaxColumns {
		return nil, &FileError{File: file, Reason: fmt.Sprintf("it has %d columns, the limit is %d", n, MaxColumns)}
	}
	if j.names, err = checkNames(j.ahead[0].names); err != nil {
		return nil, &FileError{File: file, Reason: "its columns cannot be used", Err: err}
	}
	return j, nil
}

func (j *jsonReader) fault(err error) error {
	return &FileError{File: j.file, Reason: fmt.Sprintf("it cannot be read as records of JSON, in line %d, at byte %d", j.lines.at(j.d.InputOffset()), j.d.InputOffset()), Err: err}
}

// lineCounter tells the lines of places in what is read from it.
type lineCounter struct {
	r      io.Reader
	read   int64
	ends   []int64 // places of line feeds from the last place on
	before int     // number of those before
}

func (l *lineCounter) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	for i, c := range p[:n] {
		if c == '\n' {
			l.ends = append(l.ends, l.read+int64(i))
		}
	}
	l.read += int64(n)
	return n, err
}

// at returns the line of a place that is not before the last one.
func (l *lineCounter) at(place int64) int {
	n, _ := slices.BinarySearch(l.ends, place)
	l.ends, l.before = l.ends[n:], l.before+n
	return l.before + 1
}

// record returns the next record, or io.EOF.
func (j *jsonReader) record() (out jsonRecord, err error) {
	if !j.d.More() {
		if !j.array {
			return out, io.EOF
		}
		if _, err := j.d.Token(); err != nil { // the end of the array
			return out, noEOF(err)
		}
		return out, io.EOF
	}
	if t, err := j.d.Token(); err != nil {
		return out, noEOF(err)
	} else if t != json.Delim('{') {
		return out, fmt.Errorf("%v is not a record such as {\"x\": 1}", t)
	}
	out.line = j.lines.at(j.d.InputOffset())
	for j.d.More() {
		name, err := j.d.Token()
		if err != nil {
			return out, noEOF(err)
		}
		value, err := j.d.Token()
		if err != nil {
			return out, noEOF(err)
		}
		if _, nested := value.(json.Delim); nested {
			return out, fmt.Errorf("the value of %q is nested; only numbers, texts, true, false and null can be read; pandas writes them by to_json(orient=\"records\")", name)
		}
		var text []byte
		if value != nil {
			text = fmt.Append(nil, value)
		}
		out.names, out.texts = append(out.names, name.(string)), append(out.texts, text)
	}
	_, err = j.d.Token()
	return out, noEOF(err)
}

// noEOF makes the end of a file within a record an error.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (j *jsonReader) columns() ([]string, int) { return j.names, len(j.names) }

func (j *jsonReader) describe(at int, _ *columnBuilder) (texts [][]byte) {
	texts = [][]byte{}
	for _, record := range j.ahead {
		if i := slices.Index(record.names, j.names[at]); i >= 0 {
			texts = append(texts, record.texts[i])
		}
	}
	return texts
}

func (j *jsonReader) next(b *builder, col0 int) error {
	var record jsonRecord
	err := j.late
	if len(j.ahead) > 0 {
		record, j.ahead, err = j.ahead[0], j.ahead[1:], nil
	} else if err == nil {
		record, err = j.record()
	}
	if err == io.EOF {
		return err
	} else if err != nil {
		return j.fault(err)
	}
	b.file, b.line, b.comma, b.open = j.file, record.line, false, false
	cells := make([][]byte, len(j.names))
	for i, name := range record.names {
		c := slices.Index(j.names, name)
		if c < 0 {
			return &data.CellError{File: j.file, Row: b.next(), Line: record.line, Reason: fmt.Sprintf("the key %q is not in the first record", name)}
		}
		cells[c] = record.texts[i]
	}
	for c, text := range cells {
		if err := b.token(col0+c, text); err != nil {
			return err
		}
	}
	return nil
}
