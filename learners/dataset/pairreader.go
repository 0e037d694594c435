package dataset

import (
	"fmt"
	"io"
)

// pairReader puts two files of numbers side by side, the inputs first and the targets
// after them.
type pairReader struct {
	file   string
	x, y   rowReader
	wx, wy int
}

func newPairReader(file string, x, y rowReader) (*pairReader, error) {
	_, wx := x.columns()
	_, wy := y.columns()
	return &pairReader{file, x, y, wx, wy}, nil
}

func (p *pairReader) columns() ([]string, int) { return nil, p.wx + p.wy }

func (p *pairReader) next(b *builder, col0 int) error {
	errX := p.x.next(b, col0)
	if errX != nil && errX != io.EOF {
		return errX
	}
	errY := p.y.next(b, col0+p.wx)
	if errY != nil && errY != io.EOF {
		return errY
	}
	if (errX == io.EOF) != (errY == io.EOF) {
		return &FileError{File: p.file, Reason: fmt.Sprintf("inputs and targets have different numbers of rows; one ends after %d", b.rows)}
	}
	return errX
}
