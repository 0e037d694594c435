package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/bkbtuner/bkb/learners/data"
)

// sampleRows is the number of records used to guess header, delimiter, times and truth values.
const sampleRows = 200

// csvReader is the rowReader of delimited text.
type csvReader struct {
	file  string
	recs  *records
	names []string // nil without header
	width int
	first [][]byte // the first record, until it is taken
	comma bool     // numbers have a decimal comma
	open  bool     // as nothing was asked
	utf8  string   // advice for text that is not
	// sample are the first records without the header.
	sample  [][]string
	missing missingSet
}

// openCSV reads the header, if any. It notes its decisions in the report.
func openCSV(file string, r *bufio.Reader, o *Options, rep *Report) (*csvReader, error) {
	r = asUTF8(r)
	head := headOf(r)
	for _, kind := range foreign {
		if bytes.HasPrefix(head, []byte(kind[0])) {
			return nil, &FileError{File: file, Reason: "it is " + kind[1]}
		}
	}
	if i := bytes.IndexByte(head, 0); i >= 0 {
		from := "utf-16"
		if bytes.HasPrefix(head[i:], []byte("\x00\x00\x00")) {
			from = "utf-32"
		}
		if from += "be"; i > 0 {
			from = from[:6] + "le"
		}
		return nil, &FileError{File: file, Reason: fmt.Sprintf("byte %d is zero, so it is not text of UTF-8; convert %s without a byte order mark, for example by iconv -f %s -t utf-8", i, strings.ToUpper(from[:6]), from)}
	}
	if bytes.IndexByte(head, '\r') >= 0 && bytes.IndexByte(head, '\n') < 0 {
		r = bufio.NewReaderSize(returns{r}, headBytes)
		head = headOf(r)
	}
	delim, why, skipped := byte(o.Delimiter), "as asked", 0
	if sep := sepLine.FindSubmatch(head); sep != nil && (delim == 0 || delim == sep[1][0]) {
		r.Discard(len(sep[0]))
		delim, why, skipped, head = sep[1][0], "the first line says so", 1, headOf(r)
	} else if delim == 0 {
		delim, why = detectDelimiter(head, o.Decimal == ',')
	}
	c := &csvReader{file: file, recs: newRecords(r, delim), missing: o.missingSet(), comma: o.Decimal == ',', open: o.Decimal == 0, utf8: toUTF8(head)}
	c.recs.next = skipped
	if c.sample = sampleRecords(head, delim, sampleRows); c.open && delim != ',' && decimalCommas(c.sample, c.missing) {
		c.comma = true
		rep.Notes = append(rep.Notes, "numbers have decimal commas")
	}
	if c.comma {
		pointed(c.sample)
	}
	header, headerWhy := o.Header == HeaderYes, "as asked"
	if o.Header == HeaderAuto {
		header, headerWhy = c.detectHeader(o.Model)
	}
	if header && len(c.sample) > 0 {
		c.sample = c.sample[1:]
	}
	rep.Delimiter, rep.DelimiterWhy = string(delim), why
	rep.Header, rep.HeaderWhy = header, headerWhy
	return c, c.readFirst(header)
}

// toUTF8 is the advice for text that is not UTF-8. Only Windows has letters from 0x80 to 0x9f.
func toUTF8(head []byte) string {
	from := "latin1"
	for i, r := range string(head) {
		if r == utf8.RuneError && head[i] < 0xa0 {
			from = "windows-1252"
		}
	}
	return "; convert the file, for example by iconv -f " + from + " -t utf-8"
}

// foreign are the first bytes of files that look like text to no one, with the remedies.
var foreign = [][2]string{
	{"\xd0\xcf\x11\xe0", "an old Excel workbook or office document; save the sheet as CSV"},
	{"BZh", "compressed by bzip2; decompress it, or compress it by gzip"},
	{"\x28\xb5\x2f\xfd", "compressed by zstd; decompress it, or compress it by gzip"},
	{"\xfd7zXZ", "compressed by xz; decompress it, or compress it by gzip"},
	{"\xff\xfe\x00\x00", "text of UTF-32; convert it, for example by iconv -f utf-32 -t utf-8"},
	{"\x00\x00\xfe\xff", "text of UTF-32; convert it, for example by iconv -f utf-32 -t utf-8"},
	{"SQLite format 3", "an SQLite database; export a table as CSV"},
	{"ARROW1", "an Arrow or Feather file; write it as Parquet"},
	{"\x89HDF", "an HDF5 file; write its table as Parquet or .npz"},
	{"\x80\x04", "a Python pickle; write its table as Parquet or CSV"},
	{"\x80\x05", "a Python pickle; write its table as Parquet or CSV"},
	{"<!DOCTYPE", "a page of HTML; download the file behind it"},
	{"<html", "a page of HTML; download the file behind it"},
	{"%PDF", "a PDF document; write its table as CSV"},
}

// sepLine is the first line by which spreadsheets tell each other the delimiter.
var sepLine = regexp.MustCompile(`^sep=([,;\t|])\r?\n`)

// asUTF8 decodes UTF-16 that starts with a byte order mark, and skips one of UTF-8.
func asUTF8(r *bufio.Reader) *bufio.Reader {
	head, _ := r.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte("\xff\xfe\x00\x00")): // UTF-32
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		r.Discard(3)
	case bytes.HasPrefix(head, []byte("\xff\xfe")), bytes.HasPrefix(head, []byte("\xfe\xff")):
		utf16 := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
		return bufio.NewReaderSize(transform.NewReader(r, utf16.NewDecoder()), headBytes)
	}
	return r
}

// returns reads carriage returns as line feeds.
type returns struct{ r io.Reader }

func (r returns) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	for i, c := range p[:n] {
		if c == '\r' {
			p[i] = '\n'
		}
	}
	return n, err
}

func (c *csvReader) readFirst(header bool) error {
	fields, err := c.record()
	if err == io.EOF {
		return &FileError{File: c.file, Reason: "it is empty"}
	} else if err != nil {
		return err
	}
	c.width = len(fields)
	if c.width > MaxColumns {
		return &FileError{File: c.file, Reason: fmt.Sprintf("it has %d columns, the limit is %d", c.width, MaxColumns)}
	}
	if !header {
		c.first = fields
		return nil
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = string(f)
	}
	if c.names, err = checkNames(names); err != nil {
		advice := "; correct the first line, or say that the file has no header"
		if !utf8.ValidString(strings.Join(names, "")) {
			advice = c.utf8
		}
		return &FileError{File: c.file, Reason: "its header cannot be used", Err: fmt.Errorf("%w%s", err, advice)}
	}
	return nil
}

// record returns the next record, or io.EOF.
func (c *csvReader) record() ([][]byte, error) {
	if first := c.first; first != nil {
		c.first = nil
		return first, nil
	}
	fields, err := c.recs.read()
	if err != nil && err != io.EOF {
		return nil, &FileError{File: c.file, Reason: "it cannot be read", Err: err}
	}
	return fields, err
}

func (c *csvReader) columns() ([]string, int) { return c.names, c.width }

func (c *csvReader) describe(at int, _ *columnBuilder) [][]byte {
	cells, _ := cellsOf(c.sample, at, c.missing)
	return cells
}

func (c *csvReader) next(b *builder, col0 int) error {
	fields, err := c.record()
	if err != nil {
		return err
	}
	line := c.recs.line
	b.file, b.line, b.comma, b.open, b.toUTF8 = c.file, line, c.comma, c.open, c.utf8
	if len(fields) != c.width {
		reason := fmt.Sprintf("it has %s, the rows before have %d", count(len(fields), "field"), c.width)
		if len(fields) > c.width && b.next() <= 3 {
			reason += "; remove titles and comments above the header, or correct the line"
		}
		if b.next() == 1 && c.names != nil && c.width > 1 && len(fields) == c.width+1 {
			reason = fmt.Sprintf("it has %s, the header has %d; if they begin with names of rows, put a name for these before the others", count(len(fields), "field"), c.width)
		}
		return &data.CellError{File: c.file, Row: b.next(), Line: line, Reason: reason}
	}
	for i, f := range fields {
		if err := b.token(col0+i, f); err != nil {
			return err
		}
	}
	return nil
}
