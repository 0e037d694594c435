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

// jsonReader is the rowReader of records of JSON, as an array or one after the other. The
// columns are the keys of the first record. A key that a record lacks, and null, are
// missing values.
type jsonReader struct {
	file  string
	d     *json.Decoder
	names []string
	array bool
	ahead [][]jsonCell // records read ahead
	late  error        // that ended them
}

type jsonCell struct {
	name  string
	value any
}

func openJSON(file string, r *bufio.Reader) (*jsonReader, error) {
	r = asUTF8(r)
	j := &jsonReader{file: file, d: json.NewDecoder(r)}
	j.d.UseNumber()
	if head := bytes.TrimLeft(headOf(r), " \t\r\n"); len(head) > 0 && head[0] == '[' {
		j.array = true
		if _, err := j.d.Token(); err != nil {
			return nil, j.fault(err)
		}
	}
	for len(j.ahead) < sampleRows && j.late == nil {
		cells, err := j.record()
		if j.late = err; err == nil {
			j.ahead = append(j.ahead, cells)
		}
	}
	if len(j.ahead) == 0 && j.late == io.EOF {
		return nil, &FileError{File: file, Reason: "it has no rows; give a file with a row of data"}
	} else if len(j.ahead) == 0 {
		return nil, j.fault(j.late)
	}
	var err error
	for _, c := range j.ahead[0] {
		j.names = append(j.names, c.name)
	}
	if len(j.names) > MaxColumns {
		return nil, &FileError{File: file, Reason: fmt.Sprintf("it has %d columns, the limit is %d", len(j.names), MaxColumns)}
	}
	if j.names, err = checkNames(j.names); err != nil {
		return nil, &FileError{File: file, Reason: "its columns cannot be used", Err: err}
	}
	return j, nil
}

func (j *jsonReader) fault(err error) error {
	return &FileError{File: j.file, Reason: fmt.Sprintf("it cannot be read as records of JSON, at byte %d", j.d.InputOffset()), Err: err}
}

// record returns the cells of the next record, or io.EOF.
func (j *jsonReader) record() ([]jsonCell, error) {
	if !j.d.More() {
		if !j.array {
			return nil, io.EOF
		}
		if _, err := j.d.Token(); err != nil { // the end of the array
			return nil, noEOF(err)
		}
		return nil, io.EOF
	}
	if t, err := j.d.Token(); err != nil {
		return nil, noEOF(err)
	} else if t != json.Delim('{') {
		return nil, fmt.Errorf("%v is not a record such as {\"x\": 1}", t)
	}
	var out []jsonCell
	for j.d.More() {
		name, err := j.d.Token()
		if err != nil {
			return nil, noEOF(err)
		}
		value, err := j.d.Token()
		if err != nil {
			return nil, noEOF(err)
		}
		if _, nested := value.(json.Delim); nested {
			return nil, fmt.Errorf("the value of %q is nested; only numbers, texts, true, false and null can be read", name)
		}
		out = append(out, jsonCell{name.(string), value})
	}
	_, err := j.d.Token()
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
		for _, c := range record {
			if c.name == j.names[at] {
				texts = append(texts, jsonText(c.value))
			}
		}
	}
	return texts
}

func jsonText(v any) []byte {
	if v == nil {
		return nil
	}
	return fmt.Append(nil, v)
}

func (j *jsonReader) next(b *builder, col0 int) error {
	var cells []jsonCell
	err := j.late
	if len(j.ahead) > 0 {
		cells, j.ahead, err = j.ahead[0], j.ahead[1:], nil
	} else if err == nil {
		cells, err = j.record()
	}
	if err == io.EOF {
		return err
	} else if err != nil {
		return j.fault(err)
	}
	b.file, b.line, b.comma, b.open = j.file, 0, false, false
	values := make(map[string]any, len(cells))
	for _, c := range cells {
		if !slices.Contains(j.names, c.name) {
			return &data.CellError{File: j.file, Row: b.next(), Reason: fmt.Sprintf("the key %q is not in the first record", c.name)}
		}
		values[c.name] = c.value
	}
	for c, name := range j.names {
		if err := b.token(col0+c, jsonText(values[name])); err != nil {
			return err
		}
	}
	return nil
}
