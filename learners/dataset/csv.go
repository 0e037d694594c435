package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/bkbtuner/bkb/learners/data"
)

// sampleRows is the number of records used to guess header and delimiter.
const sampleRows = 200

// csvReader is the rowReader of delimited text.
type csvReader struct {
	file  string
	recs  *records
	names []string // nil without header
	width int
	first [][]byte // a record read ahead
	line0 int      // its line
	// sample are the first records without the header.
	sample  [][]string
	missing missingSet
}

// openCSV reads the header, if any. It notes its decisions in the report.
func openCSV(file string, r *bufio.Reader, o *Options, rep *Report) (*csvReader, error) {
	head, _ := r.Peek(r.Size())
	if bytes.HasPrefix(head, []byte("\xef\xbb\xbf")) {
		r.Discard(3)
		head = head[3:]
	}
	if bytes.HasPrefix(head, []byte("\xff\xfe")) || bytes.HasPrefix(head, []byte("\xfe\xff")) {
		return nil, &FileError{File: file, Reason: "it is UTF-16; convert it to UTF-8"}
	}
	if i := bytes.IndexByte(head, 0); i >= 0 {
		return nil, &FileError{File: file, Reason: fmt.Sprintf("byte %d is zero, so it is not text", i)}
	}
	delim, why := byte(o.Delimiter), "as asked"
	if delim == 0 {
		delim, why = detectDelimiter(head)
	}
	recs := sampleRecords(head, delim, sampleRows)
	header, headerWhy := o.Header == HeaderYes, "as asked"
	if o.Header == HeaderAuto {
		header, headerWhy = detectHeader(recs, o.missingSet())
	}
	if header && len(recs) > 0 {
		recs = recs[1:]
	}
	rep.Delimiter, rep.DelimiterWhy = string(delim), why
	rep.Header, rep.HeaderWhy = header, headerWhy
	c := &csvReader{file: file, recs: newRecords(r, delim), sample: recs, missing: o.missingSet()}
	return c, c.readFirst(header)
}

func (c *csvReader) readFirst(header bool) error {
	fields, err := c.recs.read()
	if err == io.EOF {
		return &FileError{File: c.file, Reason: "it is empty"}
	} else if err != nil {
		return &FileError{File: c.file, Reason: "it cannot be read", Err: err}
	}
	c.width = len(fields)
	if c.width > MaxColumns {
		return &FileError{File: c.file, Reason: fmt.Sprintf("it has %d columns, the limit is %d", c.width, MaxColumns)}
	}
	if !header {
		c.first, c.line0 = fields, c.recs.line
		return nil
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = string(f)
	}
	if c.names, err = checkNames(names); err != nil {
		return &FileError{File: c.file, Reason: "its header cannot be used", Err: fmt.Errorf("%w; correct the first line, or say that the file has no header", err)}
	}
	return nil
}

func (c *csvReader) columns() ([]string, int) { return c.names, c.width }

// describe finds times and truth values in the first records.
func (c *csvReader) describe(at int, col *columnBuilder) {
	var cells [][]byte
	for _, rec := range c.sample {
		if at < len(rec) && !c.missing.has([]byte(rec[at])) {
			cells = append(cells, []byte(rec[at]))
		}
	}
	if col.kind == "" && len(cells) > 0 {
		if col.detect(cells, ""); col.kind == "" {
			col.undated = true
		}
	}
}

func (c *csvReader) next(b *builder, col0 int) error {
	fields, line := c.first, c.line0
	if c.first != nil {
		c.first = nil
	} else {
		var err error
		if fields, err = c.recs.read(); err == io.EOF {
			return err
		} else if err != nil {
			return &FileError{File: c.file, Reason: "it cannot be read", Err: err}
		}
		line = c.recs.line
	}
	b.file, b.line = c.file, line
	if len(fields) != c.width {
		return &data.CellError{
			File: c.file, Row: b.next(), Line: line,
			Reason: fmt.Sprintf("it has %s, the rows before have %d", count(len(fields), "field"), c.width),
		}
	}
	for i, f := range fields {
		if err := b.token(col0+i, f); err != nil {
			return err
		}
	}
	return nil
}
