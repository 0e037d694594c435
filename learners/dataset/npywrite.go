package dataset

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"
)

// WriteNPY writes numbers as a NumPy array in C order. A shape of one number is an array
// of one axis.
func WriteNPY(w io.Writer, values []float64, shape ...int) error {
	if n, ok := product(shape); !ok || n != len(values) {
		return fmt.Errorf("dataset: %d numbers do not have the shape %v", len(values), shape)
	}
	b := bufio.NewWriter(w)
	writeNPYHeader(b, "<f8", shape)
	var cell [8]byte
	for _, v := range values {
		b.Write(binary.LittleEndian.AppendUint64(cell[:0], math.Float64bits(v)))
	}
	return b.Flush() // which returns the first error
}

// WriteNPYTexts writes texts as a NumPy array of one axis.
func WriteNPYTexts(w io.Writer, texts []string) error {
	width := 1 // NumPy's least
	for _, t := range texts {
		width = max(width, utf8.RuneCountInString(t))
	}
	b := bufio.NewWriter(w)
	writeNPYHeader(b, fmt.Sprintf("<U%d", width), []int{len(texts)})
	var cell [4]byte
	for _, t := range texts {
		n := 0
		for _, r := range t {
			b.Write(binary.LittleEndian.AppendUint32(cell[:0], uint32(r)))
			n++
		}
		for ; n < width; n++ {
			b.Write(make([]byte, 4))
		}
	}
	return b.Flush()
}

// writeNPYHeader writes a header of version 1, padded so that the data begin at a
// multiple of 64 bytes, as NEP 1 has it.
func writeNPYHeader(b *bufio.Writer, descr string, shape []int) {
	var axes strings.Builder
	for _, n := range shape {
		fmt.Fprintf(&axes, "%d,", n)
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, axes.String())
	const before = 10 // magic, version, length
	pad := 63 - (before+len(text))%64
	text += strings.Repeat(" ", pad) + "\n"
	b.WriteString("\x93NUMPY\x01\x00")
	b.Write(binary.LittleEndian.AppendUint16(nil, uint16(len(text))))
	b.WriteString(text)
}
