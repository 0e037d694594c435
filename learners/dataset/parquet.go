package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"

	"github.com/bkbtuner/bkb/learners/data"
)

// parquetReader is the rowReader of flat Parquet files. Null is missing.
type parquetReader struct {
	file  string
	names []string
	cols  []parquetColumn
	rows  parquet.Rows
	buf   []parquet.Row
	ready []parquet.Row
}

// parquetColumn adds the values of a column to a builder.
type parquetColumn struct {
	kind  data.Kind // Time, Boolean or ""
	texts bool
	add   func(b *builder, c int, v parquet.Value) error
}

func openParquet(in *input, o *Options) (r rowReader, err error) {
	at, size, err := in.randomAccess(o)
	if err != nil {
		return nil, err
	}
	defer recoverParquet(in.path, &err)
	if err := checkParquetFooter(at, size); err != nil {
		return nil, &FileError{File: in.path, Reason: "it cannot be read as Parquet", Err: err}
	}
	f, err := parquet.OpenFile(at, size, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
	if err != nil {
		return nil, &FileError{File: in.path, Reason: "it cannot be read as Parquet", Err: err}
	}
	p := &parquetReader{file: in.path, rows: parquet.MultiRowGroup(f.RowGroups()...).Rows(), buf: make([]parquet.Row, sampleRows)}
	for i, c := range f.Root().Columns() {
		if !c.Leaf() || c.Repeated() {
			return nil, &FileError{File: in.path, Reason: fmt.Sprintf("the column %q is nested; only flat columns can be read", c.Name())}
		}
		col, err := newParquetColumn(&f.Metadata().Schema[1+i], c.Type())
		if err != nil {
			return nil, &FileError{File: in.path, Reason: fmt.Sprintf("the column %q is of the type %v, which cannot be read; write it as numbers, texts or times", c.Name(), err)}
		}
		p.names, p.cols = append(p.names, c.Name()), append(p.cols, col)
	}
	if p.names, err = checkNames(p.names); err != nil {
		return nil, &FileError{File: in.path, Reason: "its columns cannot be used", Err: err}
	}
	if err := p.fill(); err != nil && err != io.EOF {
		return nil, err
	}
	return p, nil
}

// checkParquetFooter verifies that the description at the end of a Parquet file lies within
// the file. The library makes lists of the claimed length before it reads them, and a process
// out of memory cannot recover, so lists that do not fit into the description are refused.
func checkParquetFooter(r io.ReaderAt, size int64) error {
	var end [8]byte
	if size < 12 {
		return errors.New("it is too short")
	}
	if _, err := r.ReadAt(end[:], size-8); err != nil && err != io.EOF {
		return err
	}
	length := int64(binary.LittleEndian.Uint32(end[:]))
	if string(end[4:]) != "PAR1" {
		return errors.New("it does not end in PAR1: it is cut off or encrypted")
	}
	if length > size-12 || length > maxDescription {
		return fmt.Errorf("its description of %d bytes is longer than the file", length)
	}
	footer := make([]byte, length)
	if _, err := r.ReadAt(footer, size-8-length); err != nil && err != io.EOF {
		return err
	}
	var p thrift.CompactProtocol
	if err := thrift.NewDecoder(fittingLists{p.NewReaderFromBytes(footer), len(footer)}).Decode(new(format.FileMetaData)); err != nil {
		return fmt.Errorf("its description is damaged: %w", err)
	}
	return nil
}

// fittingLists reads Thrift of some bytes, in which an element of a list has one at least.
type fittingLists struct {
	thrift.BytesReader
	bytes int
}

func (r fittingLists) ReadList() (thrift.List, error) {
	l, err := r.BytesReader.ReadList()
	if err == nil && int(l.Size) > r.bytes-r.BytesRead() {
		err = fmt.Errorf("a list of %d elements ends beyond it", l.Size)
	}
	return l, err
}

// recoverParquet turns a panic of the reader on a broken file into an error.
func recoverParquet(path string, err *error) {
	if p := recover(); p != nil {
		*err = &FileError{File: path, Reason: "it is broken", Err: fmt.Errorf("%v", p)}
	}
}

func (p *parquetReader) columns() ([]string, int) { return p.names, len(p.names) }

func (p *parquetReader) describe(c int, col *columnBuilder) (texts [][]byte) {
	switch {
	case col.kind == data.Categorical, col.weights:
		return nil
	case !p.cols[c].texts:
		col.kind = p.cols[c].kind
		return nil
	}
	texts = [][]byte{}
	for _, row := range p.ready {
		if c < len(row) && !row[c].IsNull() {
			texts = append(texts, row[c].ByteArray())
		}
	}
	return texts
}

func (p *parquetReader) next(b *builder, col0 int) error {
	b.file, b.line = p.file, 0
	if err := p.fill(); err != nil {
		return err
	}
	row := p.ready[0]
	p.ready = p.ready[1:]
	if len(row) != len(p.names) {
		return &data.CellError{File: p.file, Row: b.next(), Reason: fmt.Sprintf("it has %s of %d", count(len(row), "cell"), len(p.names))}
	}
	for _, v := range row {
		c := v.Column()
		if c < 0 || c >= len(p.names) {
			return &FileError{File: p.file, Reason: "it is broken: a cell belongs to no column"}
		}
		add := p.cols[c].add
		if v.IsNull() {
			add = func(b *builder, c int, _ parquet.Value) error { return b.none(c) }
		}
		if err := add(b, col0+c, v); err != nil {
			return err
		}
	}
	return nil
}

// fill reads rows if none is ready. It returns io.EOF at the end.
func (p *parquetReader) fill() (err error) {
	defer recoverParquet(p.file, &err)
	if len(p.ready) > 0 {
		return nil
	}
	n, err := p.rows.ReadRows(p.buf)
	switch p.ready = p.buf[:n]; {
	case err != nil && !errors.Is(err, io.EOF):
		return &FileError{File: p.file, Reason: "it cannot be read", Err: err}
	case n == 0:
		return io.EOF
	}
	return nil
}

// newParquetColumn returns the reader of a column, by its logical and its physical type.
// The error names a type that has none (Apache Parquet, LogicalTypes.md).
// Older files have converted types in place of logical ones.
func newParquetColumn(s *format.SchemaElement, typ parquet.Type) (parquetColumn, error) {
	logical := s.LogicalType.Value
	if logical == nil && s.ConvertedType.Valid {
		if s.ConvertedType.V == deprecated.Decimal {
			logical = &format.DecimalType{Scale: s.Scale.V, Precision: s.Precision.V}
		} else if l := typ.LogicalType(); l != nil {
			logical = l.Value
		} else {
			return parquetColumn{}, errors.New("INTERVAL") // the only other one of a flat column
		}
	}
	kind := parquet.Kind(s.Type.V)
	whole := kind == parquet.Int32 || kind == parquet.Int64
	bytes := kind == parquet.ByteArray || kind == parquet.FixedLenByteArray
	switch t := logical.(type) {
	case *format.DecimalType:
		if scale := int(t.Scale); scale >= 0 && scale <= 400 && (whole || bytes) {
			return parquetColumn{add: func(b *builder, c int, v parquet.Value) error { return b.decimal(c, v, scale) }}, nil
		}
	case *format.IntType:
		if whole && !t.IsSigned {
			return parquetColumn{add: func(b *builder, c int, v parquet.Value) error { return integer(b, c, unsigned(v)) }}, nil
		} else if whole {
			return parquetColumn{add: addInteger}, nil
		}
	case *format.DateType:
		if whole {
			return parquetTimes(24 * time.Hour), nil
		}
	case *format.TimeType:
		if whole && t.Unit.Value != nil {
			return parquetTimes(t.Unit.Value.Duration()), nil
		}
	case *format.TimestampType:
		if whole && t.Unit.Value != nil {
			return parquetTimes(t.Unit.Value.Duration()), nil
		}
	case *format.Float16Type:
		if bytes && s.TypeLength.V == 2 {
			return parquetColumn{add: func(b *builder, c int, v parquet.Value) error {
				return b.number(c, float16(binary.LittleEndian.Uint16(v.ByteArray())))
			}}, nil
		}
	case *format.UUIDType:
		if bytes && s.TypeLength.V == 16 {
			return parquetColumn{add: func(b *builder, c int, v parquet.Value) error {
				u := v.ByteArray()
				return b.text(c, fmt.Appendf(nil, "%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:]))
			}}, nil
		}
	case *format.StringType, *format.EnumType:
		if bytes {
			return parquetColumn{texts: true, add: addBytes}, nil
		}
	case *format.NullType, nil:
		return physicalColumn(kind)
	}
	return parquetColumn{}, fmt.Errorf("%v", logical)
}

// physicalColumn is the reader of a column without a logical type.
func physicalColumn(kind parquet.Kind) (parquetColumn, error) {
	var col parquetColumn
	switch kind {
	case parquet.Boolean:
		col.kind = data.Boolean
		col.add = func(b *builder, c int, v parquet.Value) error { return b.truth(c, v.Boolean()) }
	case parquet.Int32, parquet.Int64:
		col.add = addInteger
	case parquet.Int96: // nanoseconds of a Julian day
		col.kind = data.Time
		col.add = func(b *builder, c int, v parquet.Value) error {
			i := v.Int96()
			nano := int64(uint64(i[1])<<32 | uint64(i[0]))
			return b.time(c, seconds((int64(i[2])-2440588)*86400+nano/1e9, nano%1e9))
		}
	case parquet.Float:
		col.add = func(b *builder, c int, v parquet.Value) error { return b.number(c, float64(v.Float())) }
	case parquet.Double:
		col.add = func(b *builder, c int, v parquet.Value) error { return b.number(c, v.Double()) }
	case parquet.ByteArray:
		col.texts, col.add = true, addBytes
	default:
		return col, fmt.Errorf("%v without a logical type", kind)
	}
	return col, nil
}

// addBytes adds a text, which may be missing, a time or a truth value. It is a number only
// where the column has numbers in a model.
func addBytes(b *builder, c int, v parquet.Value) error {
	s := trim(v.ByteArray())
	if b.cols[c].kind != "" || b.missing.has(s) {
		return b.token(c, s)
	}
	return b.text(c, s)
}

func addInteger(b *builder, c int, v parquet.Value) error { return integer(b, c, signed(v)) }

func signed(v parquet.Value) int64 {
	if v.Kind() == parquet.Int32 {
		return int64(v.Int32())
	}
	return v.Int64()
}

func unsigned(v parquet.Value) uint64 {
	if v.Kind() == parquet.Int32 {
		return uint64(v.Uint32())
	}
	return v.Uint64()
}

// parquetTimes is the reader of times that count units.
func parquetTimes(unit time.Duration) parquetColumn {
	return parquetColumn{kind: data.Time, add: func(b *builder, c int, v parquet.Value) error {
		n := signed(v)
		if far := uint64(max(n, -n)); far == math.MaxInt64 || unit == 24*time.Hour && far == math.MaxInt32 { // of databases
			return b.number(c, math.Inf(1))
		}
		if unit >= time.Second {
			return b.time(c, float64(n)*unit.Seconds())
		}
		per := int64(time.Second / unit)
		return b.time(c, seconds(n/per, n%per*int64(unit)))
	}}
}

// decimal adds the decimal number v·10^−scale, rounded once.
func (b *builder) decimal(c int, v parquet.Value, scale int) error {
	var n *big.Int
	if v.Kind() == parquet.Int32 || v.Kind() == parquet.Int64 {
		n = big.NewInt(signed(v))
	} else {
		bytes := v.ByteArray() // two's complement, the first byte first
		n = new(big.Int).SetBytes(bytes)
		if len(bytes) > 0 && bytes[0]&0x80 != 0 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(bytes))))
		}
	}
	value, err := parseNumber(fmt.Appendf(nil, "%de-%d", n, scale))
	if err != nil {
		return b.fault(c, err.Error())
	}
	return b.number(c, value)
}

// float16 returns a number of IEEE 754's half precision.
func float16(h uint16) float64 {
	exponent, fraction := int(h>>10&31), float64(h&1023)/1024
	v := math.Ldexp(1+fraction, exponent-15)
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -14)
	case 31:
		v = math.Inf(1)
		if fraction != 0 {
			v = math.NaN()
		}
	}
	if h>>15 == 1 {
		v = -v
	}
	return v
}
