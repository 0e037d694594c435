package learners

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"reflect"
	"slices"
)

// A model file has these parts and nothing behind them. All numbers are little endian.
//
//	magic        8 bytes "BKBMODEL"
//	version      uint32
//	length       uint32 of the header
//	header       JSON, with the list of the arrays
//	checksum     uint32, CRC-32C of all before
//	arrays       in the order of the list: elements, then uint32 CRC-32C of them
//
// Memory grows with the data read, not with the lengths that a header claims.
const (
	Magic         = "BKBMODEL" // the start of every model file
	formatVersion = 1
	maxHeader     = 1 << 26
	maxArrays     = 8 // of a model, or of a member of an average
	// maxElements limits the lengths that a header may claim, before anything is
	// computed from them.
	maxElements = 1 << 48
	chunk       = 1 << 20
)

// FormatError reports a file that is not a model, or a damaged one.
type FormatError struct {
	Reason string
	Err    error // cause, if any
}

func (e *FormatError) Error() string {
	s := "learners: not a usable model file: " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *FormatError) Unwrap() error { return e.Err }

// VersionError reports a model file of a later version of the format.
type VersionError struct{ Got, Known uint32 }

func (e *VersionError) Error() string {
	return fmt.Sprintf("learners: the model file has format version %d, this program knows versions up to %d; use a newer program", e.Got, e.Known)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// element is the type of the elements of arrays.
type element interface {
	float32 | float64 | int32 | int64
}

// array is one section of a model file.
type array struct {
	Name  string `json:"name"`
	Type  string `json:"type"` // float32, float64, int32, int64
	Count int    `json:"count"`
	data  any    // []float32, …
}

func newArray[T element](name string, data []T) array {
	return array{Name: name, Type: fmt.Sprintf("%T", *new(T)), Count: len(data), data: data}
}

// writeContainer writes a header, which must be JSON, and arrays.
func writeContainer(w io.Writer, header []byte, arrays []*array) error {
	if len(header) > maxHeader {
		return &FormatError{Reason: fmt.Sprintf("a header of %d bytes, at most %d can be written", len(header), maxHeader)}
	}
	head := append(make([]byte, 0, len(header)+20), Magic...)
	head = binary.LittleEndian.AppendUint32(head, formatVersion)
	head = binary.LittleEndian.AppendUint32(head, uint32(len(header)))
	head = append(head, header...)
	head = binary.LittleEndian.AppendUint32(head, crc32.Checksum(head, castagnoli))
	if _, err := w.Write(head); err != nil {
		return err
	}
	var buf []byte
	for _, a := range arrays {
		sum := crc32.New(castagnoli)
		data, out := reflect.ValueOf(a.data), io.MultiWriter(w, sum)
		for i := 0; i < a.Count; i += chunk / 8 {
			piece, err := binary.Append(buf[:0], binary.LittleEndian, data.Slice(i, min(i+chunk/8, a.Count)).Interface())
			if err == nil {
				_, err = out.Write(piece)
			}
			if err != nil {
				return err
			}
			buf = piece
		}
		if err := binary.Write(w, binary.LittleEndian, sum.Sum32()); err != nil {
			return err
		}
	}
	return nil
}

// readHeader reads the file up to the arrays.
func readHeader(r io.Reader) (json.RawMessage, error) {
	var front [16]byte
	if _, err := io.ReadFull(r, front[:]); err != nil {
		return nil, cut("its head", err)
	}
	if string(front[:8]) != Magic {
		return nil, &FormatError{Reason: "it does not begin with " + Magic}
	}
	if v := binary.LittleEndian.Uint32(front[8:]); v > formatVersion {
		return nil, &VersionError{v, formatVersion}
	} else if v == 0 {
		return nil, &FormatError{Reason: "format version 0"}
	}
	length := binary.LittleEndian.Uint32(front[12:])
	if length > maxHeader {
		return nil, &FormatError{Reason: fmt.Sprintf("a header of %d bytes, at most %d are possible", length, maxHeader)}
	}
	var header bytes.Buffer
	if _, err := io.CopyN(&header, r, int64(length)); err != nil {
		return nil, cut("its header", err)
	}
	sum := crc32.Update(crc32.Checksum(front[:], castagnoli), castagnoli, header.Bytes())
	return header.Bytes(), checkSum(r, sum, "its header")
}

// readArrays fills in the data of the listed arrays, and verifies that nothing follows.
func readArrays(r io.Reader, arrays []*array) error {
	for _, a := range arrays {
		if a.Count < 0 || a.Count > maxElements {
			return &FormatError{Reason: fmt.Sprintf("array %q of %d elements", a.Name, a.Count)}
		}
		read, ok := readers[a.Type]
		if !ok {
			return &FormatError{Reason: fmt.Sprintf("array %q has elements of the unknown type %q", a.Name, a.Type)}
		}
		if err := read(r, a); err != nil {
			return err
		}
	}
	var one [1]byte
	switch _, err := io.ReadFull(r, one[:]); {
	case err == nil:
		return &FormatError{Reason: "there are data after its end"}
	case !errors.Is(err, io.EOF):
		return &FormatError{Reason: "it cannot be read", Err: err}
	}
	return nil
}

// readers read the arrays of each type.
var readers = map[string]func(io.Reader, *array) error{
	"float32": readArray[float32], "float64": readArray[float64], "int32": readArray[int32], "int64": readArray[int64],
}

// readArray reads a.Count elements in pieces. Memory stays within about twice the size
// of the file, even if the header claims more.
func readArray[T element](r io.Reader, a *array) error {
	sum, perChunk := crc32.New(castagnoli), chunk/binary.Size(*new(T))
	from, out := io.TeeReader(r, sum), make([]T, 0, min(a.Count, perChunk))
	for len(out) < a.Count {
		n := min(a.Count-len(out), perChunk)
		out = slices.Grow(out, n)[:len(out)+n]
		if err := binary.Read(from, binary.LittleEndian, out[len(out)-n:]); err != nil {
			return cut(fmt.Sprintf("array %q", a.Name), err)
		}
	}
	a.data = out
	return checkSum(r, sum.Sum32(), fmt.Sprintf("array %q", a.Name))
}

func checkSum(r io.Reader, want uint32, what string) error {
	var got [4]byte
	if _, err := io.ReadFull(r, got[:]); err != nil {
		return cut(what, err)
	}
	if binary.LittleEndian.Uint32(got[:]) != want {
		return &FormatError{Reason: what + " is damaged: its checksum is wrong"}
	}
	return nil
}

func cut(what string, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return &FormatError{Reason: "it ends within " + what, Err: io.ErrUnexpectedEOF}
	}
	return &FormatError{Reason: what + " cannot be read", Err: err}
}
