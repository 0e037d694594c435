package dataset

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
)

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
