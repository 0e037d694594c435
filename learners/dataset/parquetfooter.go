package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// checkParquetFooter verifies that the description at the end of a Parquet file lies
// within the file, and that its lists and texts lie within the description. The library
// allocates the claimed lengths before it reads, and a process out of memory cannot
// recover.
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
	w := thriftWalk{footer}
	if !w.skipStruct(0) {
		return errors.New("its description is damaged")
	}
	return nil
}

// thriftWalk steps over values in Thrift's compact protocol. Its methods report whether
// the value lies within the bytes. The source is thrift-compact-protocol.md of Apache
// Thrift.
type thriftWalk struct{ b []byte }

// maxThriftDepth is more than Parquet's deepest structure.
const maxThriftDepth = 32

func (w *thriftWalk) skip(n uint64) bool {
	if n > uint64(len(w.b)) {
		return false
	}
	w.b = w.b[n:]
	return true
}

func (w *thriftWalk) varint() (uint64, bool) {
	v, n := binary.Uvarint(w.b)
	if n <= 0 {
		return 0, false
	}
	w.b = w.b[n:]
	return v, true
}

func (w *thriftWalk) byte() (byte, bool) {
	if len(w.b) == 0 {
		return 0, false
	}
	c := w.b[0]
	w.b = w.b[1:]
	return c, true
}

func (w *thriftWalk) skipStruct(depth int) bool {
	for depth < maxThriftDepth {
		header, ok := w.byte()
		if !ok || header == 0 {
			return ok
		}
		if header>>4 == 0 { // the field's number follows
			if _, ok := w.varint(); !ok {
				return false
			}
		}
		if kind := header & 15; kind > 2 && !w.skipValue(kind, depth) { // 1 is true and 2 is false
			return false
		}
	}
	return false
}

func (w *thriftWalk) skipValue(kind byte, depth int) bool {
	switch kind {
	case 1, 2, 3: // a byte
		return w.skip(1)
	case 4, 5, 6: // integers
		_, ok := w.varint()
		return ok
	case 7: // double
		return w.skip(8)
	case 8: // text
		n, ok := w.varint()
		return ok && w.skip(n)
	case 9, 10: // list, set
		return w.skipList(depth + 1)
	case 12:
		return w.skipStruct(depth + 1)
	}
	return false // Parquet has no maps
}

func (w *thriftWalk) skipList(depth int) bool {
	header, ok := w.byte()
	n := uint64(header >> 4)
	if ok && n == 15 {
		n, ok = w.varint()
	}
	if !ok || n > uint64(len(w.b)) || depth > maxThriftDepth { // an element has a byte at least
		return false
	}
	for range n {
		if !w.skipValue(header&15, depth) {
			return false
		}
	}
	return true
}
