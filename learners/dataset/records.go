package dataset

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

// records splits delimited text. A record ends with a line feed, with or without a
// carriage return. Fields may be quoted as in RFC 4180, with line feeds inside. A quote
// that does not open a field stands for itself. Empty lines are no records.
type records struct {
	r      *bufio.Reader
	delim  byte // Whitespace means runs of spaces and tabs
	line   int  // of the start of the last record
	next   int  // lines read
	long   []byte
	quoted []byte // unquoted text of the record
	fields [][]byte
}

func newRecords(r *bufio.Reader, delim byte) *records { return &records{r: r, delim: delim} }

// read returns the fields of the next record, or io.EOF. They stay valid until the next call.
func (d *records) read() ([][]byte, error) {
	for {
		line, err := d.readLine()
		if err != nil {
			return nil, err
		}
		d.line = d.next
		if len(line) == 0 || d.delim == Whitespace && len(trim(line)) == 0 {
			continue
		}
		d.fields = d.fields[:0]
		if bytes.IndexByte(line, '"') >= 0 {
			err = d.splitQuoted(line)
			return d.fields, err
		}
		for more := true; more; {
			var field []byte
			if field, line, more = d.cut(line); more || d.delim != Whitespace || len(field) > 0 {
				d.fields = append(d.fields, field)
			}
		}
		return d.fields, nil
	}
}

// cut cuts the next field off a line.
func (d *records) cut(line []byte) (field, rest []byte, more bool) {
	if d.delim != Whitespace {
		return bytes.Cut(line, []byte{d.delim})
	}
	line = trim(line)
	i := bytes.IndexAny(line, " \t")
	if i < 0 {
		return line, nil, false
	}
	return line[:i], line[i+1:], true
}

// readLine returns the next line without its end.
func (d *records) readLine() ([]byte, error) {
	line, err := d.r.ReadSlice('\n')
	for d.long = d.long[:0]; errors.Is(err, bufio.ErrBufferFull); {
		if len(d.long) > MaxLine {
			return nil, fmt.Errorf("line %d is longer than %d bytes", d.next+1, MaxLine)
		}
		d.long = append(d.long, line...)
		line, err = d.r.ReadSlice('\n')
	}
	if len(d.long) > 0 {
		d.long = append(d.long, line...)
		line = d.long
	}
	if err != nil && (err != io.EOF || len(line) == 0) {
		return nil, err
	}
	d.next++
	return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
}

// splitQuoted splits a record with quotes. It reads more lines while a quote is open.
func (d *records) splitQuoted(line []byte) error {
	d.quoted = d.quoted[:0]
	var ends []int // of the fields in d.quoted
	for {
		if d.delim == Whitespace {
			if line = trim(line); len(line) == 0 {
				break
			}
		}
		if len(line) == 0 || line[0] != '"' {
			field, rest, more := d.cut(line)
			d.quoted = append(d.quoted, field...)
			ends = append(ends, len(d.quoted))
			if !more {
				break
			}
			line = rest
			continue
		}
		rest, err := d.unquote(line[1:])
		if err != nil {
			return err
		}
		ends = append(ends, len(d.quoted))
		if len(rest) == 0 {
			break
		}
		line = rest[1:]
	}
	start := 0
	for _, end := range ends {
		d.fields = append(d.fields, d.quoted[start:end])
		start = end
	}
	return nil
}

// unquote appends the rest of a quoted field to d.quoted. It returns the text after the
// closing quote, which is empty or starts with the delimiter.
func (d *records) unquote(line []byte) ([]byte, error) {
	for {
		i := bytes.IndexByte(line, '"')
		if i < 0 {
			d.quoted = append(append(d.quoted, line...), '\n')
			if len(d.quoted) > MaxLine {
				return nil, fmt.Errorf("the record at line %d is longer than %d bytes; is a quote missing?", d.line, MaxLine)
			}
			var err error
			if line, err = d.readLine(); err == io.EOF {
				return nil, fmt.Errorf("the quote opened in the record at line %d is never closed", d.line)
			} else if err != nil {
				return nil, err
			}
			continue
		}
		d.quoted = append(d.quoted, line[:i]...)
		line = line[i+1:]
		switch {
		case len(line) == 0 || line[0] == d.delim || d.delim == Whitespace && line[0] == '\t':
			return line, nil
		case line[0] == '"':
			d.quoted = append(d.quoted, '"')
			line = line[1:]
		default:
			return nil, fmt.Errorf("line %d: %s after a closing quote", d.next, excerpt(line))
		}
	}
}
