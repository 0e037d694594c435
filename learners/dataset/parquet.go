package dataset

import (
	"errors"
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"

	"github.com/bkbtuner/bkb/learners/data"
)

// parquetReader is the rowReader of flat Parquet files. Null is missing.
type parquetReader struct {
	file   string
	names  []string
	groups []parquet.RowGroup
	rows   parquet.Rows // of the current group
	buf    []parquet.Row
	ready  []parquet.Row
}

func openParquet(in *input) (r rowReader, err error) {
	at, size, err := in.randomAccess()
	if err != nil {
		return nil, err
	}
	if err := checkParquetFooter(at, size); err != nil {
		return nil, &FileError{File: in.path, Reason: "it cannot be read as Parquet", Err: err}
	}
	defer recoverParquet(in.path, &err)
	f, err := parquet.OpenFile(at, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, &FileError{File: in.path, Reason: "it cannot be read as Parquet", Err: err}
	}
	p := &parquetReader{file: in.path, groups: f.RowGroups(), buf: make([]parquet.Row, 64)}
	for _, field := range f.Schema().Fields() {
		if !field.Leaf() || field.Repeated() {
			return nil, &FileError{File: in.path, Reason: fmt.Sprintf("the column %q is nested; only flat columns can be read", field.Name())}
		}
		p.names = append(p.names, field.Name())
	}
	if p.names, err = checkNames(p.names); err != nil {
		return nil, &FileError{File: in.path, Reason: "its columns cannot be used", Err: err}
	}
	return p, nil
}

// recoverParquet turns a panic of the reader on a broken file into an error.
func recoverParquet(path string, err *error) {
	if p := recover(); p != nil {
		*err = &FileError{File: path, Reason: "it is broken", Err: fmt.Errorf("%v", p)}
	}
}

func (p *parquetReader) columns() ([]string, int) { return p.names, len(p.names) }

func (p *parquetReader) next(b *builder, col0 int) error {
	b.file, b.line = p.file, 0
	row, err := p.row()
	if err != nil {
		return err
	}
	if len(row) != len(p.names) {
		return &data.CellError{File: p.file, Row: b.next(), Reason: fmt.Sprintf("it has %s of %d", count(len(row), "cell"), len(p.names))}
	}
	for _, v := range row {
		c := v.Column()
		if c < 0 || c >= len(p.names) {
			return &FileError{File: p.file, Reason: "it is broken: a cell belongs to no column"}
		}
		if err := addParquet(b, col0+c, v); err != nil {
			return err
		}
	}
	return nil
}

// row returns the next row, or io.EOF.
func (p *parquetReader) row() (row parquet.Row, err error) {
	defer recoverParquet(p.file, &err)
	for len(p.ready) == 0 {
		if p.rows == nil {
			if len(p.groups) == 0 {
				return nil, io.EOF
			}
			p.rows, p.groups = p.groups[0].Rows(), p.groups[1:]
		}
		n, err := p.rows.ReadRows(p.buf)
		p.ready = p.buf[:n]
		if errors.Is(err, io.EOF) || err == nil && n == 0 {
			p.rows.Close()
			p.rows = nil
		} else if err != nil {
			return nil, &FileError{File: p.file, Reason: "it cannot be read", Err: err}
		}
	}
	row, p.ready = p.ready[0], p.ready[1:]
	return row, nil
}

func addParquet(b *builder, c int, v parquet.Value) error {
	if v.IsNull() {
		return b.none(c)
	}
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			return b.number(c, 1)
		}
		return b.number(c, 0)
	case parquet.Int32:
		return b.number(c, float64(v.Int32()))
	case parquet.Int64:
		return b.number(c, float64(v.Int64()))
	case parquet.Int96:
		return b.fault(c, fmt.Sprintf("times (%v) cannot be read", deprecated.Int96(v.Int96())))
	case parquet.Float:
		return b.number(c, float64(v.Float()))
	case parquet.Double:
		return b.number(c, v.Double())
	default:
		return b.text(c, v.ByteArray())
	}
}
