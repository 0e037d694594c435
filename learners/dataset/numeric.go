package dataset

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/bkbtuner/bkb/learners/data"
)

// scalar says how a binary file stores one number.
type scalar struct {
	kind byte // 'f', 'i', 'u', 'b' (one byte, 0 or 1)
	size int  // bytes
	big  bool // most significant byte first
}

// add adds the number at the start of s to column c.
func (t scalar) add(b *builder, c int, s []byte) error {
	var order binary.ByteOrder = binary.LittleEndian
	if t.big {
		order = binary.BigEndian
	}
	var bits uint64
	switch t.size {
	case 1:
		bits = uint64(s[0])
	case 2:
		bits = uint64(order.Uint16(s))
	case 4:
		bits = uint64(order.Uint32(s))
	case 8:
		bits = order.Uint64(s)
	}
	switch {
	case t.kind == 'f' && t.size == 4:
		return b.number(c, float64(math.Float32frombits(uint32(bits))))
	case t.kind == 'f':
		return b.number(c, math.Float64frombits(bits))
	case t.kind == 'i':
		shift := 64 - 8*t.size
		return integer(b, c, int64(bits<<shift)>>shift)
	case t.kind == 'b':
		return b.truth(c, bits != 0)
	}
	return integer(b, c, bits)
}

// matrixReader is the rowReader of a matrix of numbers stored row by row.
type matrixReader struct {
	file        string
	r           *bufio.Reader
	rows, width int
	at          int
	cell        scalar
	buf         []byte // one row
	isLabels    bool
}

// newMatrixReader returns the reader of rows×width numbers.
func newMatrixReader(file string, r *bufio.Reader, rows, width int, cell scalar) (*matrixReader, error) {
	if width > MaxColumns {
		return nil, &FileError{File: file, Reason: fmt.Sprintf("it has %d columns, the limit is %d", width, MaxColumns)}
	}
	if width == 0 || rows == 0 {
		return nil, &FileError{File: file, Reason: fmt.Sprintf("it is an empty matrix of %d×%d", rows, width)}
	}
	return &matrixReader{file: file, r: r, rows: rows, width: width, cell: cell, buf: make([]byte, width*cell.size)}, nil
}

func (m *matrixReader) columns() ([]string, int) { return nil, m.width }

func (m *matrixReader) describe(_ int, col *columnBuilder) [][]byte {
	if col.label = m.isLabels; col.kind == data.Categorical {
		return nil
	}
	col.kind = ""
	if m.cell.kind == 'b' {
		col.kind = data.Boolean
	}
	return nil
}

func (m *matrixReader) next(b *builder, col0 int) error {
	b.file, b.line = m.file, 0
	if m.at == m.rows {
		return io.EOF
	}
	if _, err := io.ReadFull(m.r, m.buf); err != nil {
		return m.broken(err)
	}
	m.at++
	for c := range m.width {
		if err := m.cell.add(b, col0+c, m.buf[c*m.cell.size:]); err != nil {
			return err
		}
	}
	return nil
}

func (m *matrixReader) broken(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &FileError{File: m.file, Reason: fmt.Sprintf("it ends in row %d of %d", m.at+1, m.rows)}
	}
	return &FileError{File: m.file, Reason: "it cannot be read", Err: err}
}

// product multiplies the lengths of a shape. It fails beyond 2⁵³.
func product(shape []int) (int, bool) {
	n := 1
	for _, s := range shape {
		if s < 0 || s > 0 && n > 1<<53/s {
			return 0, false
		}
		n *= s
	}
	return n, true
}

// idxTypes are the types of IDX files, by the third byte of the file.
var idxTypes = map[byte]scalar{
	0x08: {'u', 1, true},
	0x09: {'i', 1, true},
	0x0b: {'i', 2, true},
	0x0c: {'i', 4, true},
	0x0d: {'f', 4, true},
	0x0e: {'f', 8, true},
}

// openIDX reads the header of an IDX file. It has two zero bytes, the type, the number
// of dimensions, and the dimensions as big-endian 32-bit numbers. The first dimension
// counts rows, and the others are flattened into one row. One byte a row means class
// labels. The source is LeCun, The MNIST database.
func openIDX(file string, r *bufio.Reader) (*matrixReader, error) {
	var magic [4]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil || magic[0] != 0 || magic[1] != 0 {
		return nil, &FileError{File: file, Reason: "it does not start as an IDX file"}
	}
	cell, ok := idxTypes[magic[2]]
	if !ok || magic[3] == 0 {
		return nil, &FileError{File: file, Reason: fmt.Sprintf("IDX type %d with %d dimensions is unknown", magic[2], magic[3])}
	}
	shape := make([]int, magic[3])
	for i := range shape {
		var n [4]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return nil, &FileError{File: file, Reason: "it ends in its header"}
		}
		shape[i] = int(binary.BigEndian.Uint32(n[:]))
	}
	width, ok := product(shape[1:])
	if !ok {
		return nil, &FileError{File: file, Reason: fmt.Sprintf("its shape %v is too large", shape)}
	}
	m, err := newMatrixReader(file, r, shape[0], width, cell)
	if err != nil {
		return nil, err
	}
	m.isLabels = width == 1 && cell.size == 1
	return m, nil
}
