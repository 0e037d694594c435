package dataset

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// A chunk file holds the cells of a dense table as float64, for data that do not fit
// into memory. Numbers are little-endian.
//
//	offset 0   header, 64 bytes
//	             0  magic "BKBCELLS"
//	             8  version, uint32: 1
//	            12  columns p, uint32
//	            16  rows of a chunk c, uint32
//	            20  zero, uint32
//	            24  rows n, uint64
//	            32  offset of the description, uint64
//	            40  its length in bytes, uint32
//	            44  its CRC-32C, uint32
//	            48  zero, 12 bytes
//	            60  CRC-32C of the 60 bytes before
//	offset 64  ⌈n/c⌉ chunks: c rows (the last: what is left) of p cells,
//	           then the CRC-32C of these bytes, uint32
//	           description: JSON, names and kinds of columns and the targets
//
// The header is written last, and the file is renamed after it is synced. A file with
// this name is therefore complete.
const (
	chunkMagic      = "BKBCELLS"
	chunkVersion    = 1
	chunkHeaderSize = 64
	chunkBytes      = 1 << 20 // about the size of a chunk
	maxChunkCells   = 1 << 21 // largest chunk that is read, in cells
	maxDescription  = 1 << 30
)

// checksum is the CRC-32C of b.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// description is the JSON at the end of a chunk file.
type description struct {
	Columns []Column `json:"columns"`
	Targets []int    `json:"targets"`
	Named   bool     `json:"named"`
	From    []string `json:"from"`
}

// chunkWriter is the cellStore of a chunk file.
type chunkWriter struct {
	path  string
	tmp   *os.File
	w     *bufio.Writer
	width int
	rows  int // rows in a chunk
	chunk []byte
	at    int64
}

func chunkRowsFor(width int) int { return max(1, chunkBytes/(8*width)) }

func createChunks(path string, width int) (*chunkWriter, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".chunks-*")
	if err != nil {
		return nil, &FileError{File: path, Reason: "it cannot be created", Err: err}
	}
	w := &chunkWriter{path: path, tmp: tmp, w: bufio.NewWriterSize(tmp, 64<<10), width: width, rows: chunkRowsFor(width)}
	w.chunk = make([]byte, 0, 8*width*w.rows+4)
	w.write(make([]byte, chunkHeaderSize))
	return w, nil
}

// write writes b and keeps the first error in w.w.
func (w *chunkWriter) write(b []byte) {
	n, _ := w.w.Write(b)
	w.at += int64(n)
}

func (w *chunkWriter) add(row []float64) error {
	for _, v := range row {
		w.chunk = binary.LittleEndian.AppendUint64(w.chunk, math.Float64bits(v))
	}
	if len(w.chunk) == 8*w.width*w.rows {
		w.flush()
	}
	if _, err := w.w.Write(nil); err != nil {
		return w.failed(err)
	}
	return nil
}

func (w *chunkWriter) flush() {
	w.chunk = binary.LittleEndian.AppendUint32(w.chunk, checksum(w.chunk))
	w.write(w.chunk)
	w.chunk = w.chunk[:0]
}

func (w *chunkWriter) failed(err error) error {
	return &FileError{File: w.path, Reason: "it cannot be written", Err: err}
}

func (w *chunkWriter) finish(t *Table) error {
	if err := w.complete(t); err != nil {
		w.abort()
		return w.failed(err)
	}
	f, err := os.Open(w.path)
	if err != nil {
		return &FileError{File: w.path, Reason: "it cannot be opened", Err: err}
	}
	c, _, err := readChunkHeader(w.path, f)
	if err != nil {
		f.Close()
		return err
	}
	t.cells, t.close = c, f.Close
	t.report.Duplicates = -1
	t.report.Notes = append(t.report.Notes, fmt.Sprintf("the cells are in %s", w.path))
	return nil
}

func (w *chunkWriter) complete(t *Table) error {
	if len(w.chunk) > 0 {
		w.flush()
	}
	text, err := json.Marshal(description{t.columns, t.targets, t.named, t.report.Files})
	if err != nil {
		return err
	}
	h := chunkHeader{columns: w.width, chunkRows: w.rows, rows: t.rows, textAt: w.at, text: len(text), textCRC: checksum(text)}
	w.write(text)
	if err := w.w.Flush(); err != nil {
		return err
	}
	if _, err := w.tmp.WriteAt(h.encode(), 0); err != nil {
		return err
	}
	if err := w.tmp.Sync(); err != nil {
		return err
	}
	if err := w.tmp.Close(); err != nil {
		return err
	}
	return os.Rename(w.tmp.Name(), w.path)
}

func (w *chunkWriter) abort() {
	w.tmp.Close()
	os.Remove(w.tmp.Name())
}

// chunkHeader is the header of a chunk file.
type chunkHeader struct {
	columns, chunkRows, rows int
	textAt                   int64
	text                     int
	textCRC                  uint32
}

func (h *chunkHeader) encode() []byte {
	b := make([]byte, chunkHeaderSize)
	copy(b, chunkMagic)
	le := binary.LittleEndian
	le.PutUint32(b[8:], chunkVersion)
	le.PutUint32(b[12:], uint32(h.columns))
	le.PutUint32(b[16:], uint32(h.chunkRows))
	le.PutUint64(b[24:], uint64(h.rows))
	le.PutUint64(b[32:], uint64(h.textAt))
	le.PutUint32(b[40:], uint32(h.text))
	le.PutUint32(b[44:], h.textCRC)
	le.PutUint32(b[60:], checksum(b[:60]))
	return b
}

func (h *chunkHeader) decode(b []byte) error {
	le := binary.LittleEndian
	switch {
	case string(b[:8]) != chunkMagic:
		return errors.New("it does not start as a chunk file")
	case le.Uint32(b[60:]) != checksum(b[:60]):
		return errors.New("its header is damaged")
	case le.Uint32(b[8:]) != chunkVersion:
		return fmt.Errorf("its version is %d, this program reads %d", le.Uint32(b[8:]), chunkVersion)
	}
	rows, textAt := le.Uint64(b[24:]), le.Uint64(b[32:])
	h.columns, h.chunkRows = int(le.Uint32(b[12:])), int(le.Uint32(b[16:]))
	h.text, h.textCRC = int(le.Uint32(b[40:])), le.Uint32(b[44:])
	if h.columns < 1 || h.columns > MaxColumns || h.chunkRows < 1 || h.chunkRows > max(1, maxChunkCells/h.columns) ||
		rows < 1 || rows > 1<<48/uint64(8*h.columns+4) || h.text > maxDescription {
		return errors.New("its header has impossible numbers")
	}
	h.rows, h.textAt = int(rows), int64(textAt)
	if want := chunkHeaderSize + h.offset(h.rows); textAt != uint64(want) {
		return errors.New("its header contradicts itself")
	}
	return nil
}

// offset returns the number of bytes of the chunks of the first rows.
func (h *chunkHeader) offset(rows int) int64 {
	chunks := (rows + h.chunkRows - 1) / h.chunkRows
	return int64(rows)*int64(h.columns)*8 + 4*int64(chunks)
}

// chunkCells are the cells of a chunk file.
type chunkCells struct {
	path  string
	r     io.ReaderAt
	h     chunkHeader
	codes []int // the number of levels of each column, or −1 for numbers
}

// readChunkHeader reads and checks the header and the description.
func readChunkHeader(path string, r io.ReaderAt) (*chunkCells, *description, error) {
	c := &chunkCells{path: path, r: r}
	b := make([]byte, chunkHeaderSize)
	if _, err := r.ReadAt(b, 0); err != nil {
		return nil, nil, &FileError{File: path, Reason: "it ends in its header"}
	}
	if err := c.h.decode(b); err != nil {
		return nil, nil, &FileError{File: path, Reason: "it cannot be read as a chunk file", Err: err}
	}
	text, err := io.ReadAll(io.NewSectionReader(r, c.h.textAt, int64(c.h.text)))
	if err != nil || len(text) != c.h.text || checksum(text) != c.h.textCRC {
		return nil, nil, &FileError{File: path, Reason: "its description is damaged or cut off", Err: err}
	}
	var d description
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, nil, &FileError{File: path, Reason: "its description cannot be read", Err: err}
	}
	if err := d.check(path, c.h.columns); err != nil {
		return nil, nil, err
	}
	for i := range d.Columns {
		c.codes = append(c.codes, d.Columns[i].codes())
	}
	return c, &d, nil
}

// codes returns the number of different codes in the cells of the column, or −1 if the
// cells are numbers.
func (c *Column) codes() int {
	switch {
	case c.Kind == data.Categorical:
		return len(c.Levels)
	case c.Kind.IsNumber() && c.Values == 0:
		return 0 // all are missing
	}
	return -1
}

func (d *description) check(path string, columns int) error {
	if len(d.Columns) != columns {
		return &FileError{File: path, Reason: fmt.Sprintf("it describes %d of %d columns", len(d.Columns), columns)}
	}
	names := make([]string, columns)
	for i, c := range d.Columns {
		names[i] = c.Name
		if !c.Kind.IsNumber() && c.Kind != data.Categorical && c.Kind != data.Text {
			return &FileError{File: path, Reason: fmt.Sprintf("the column %q is of the unknown kind %q", c.Name, c.Kind)}
		}
	}
	if _, err := checkNames(names); err != nil {
		return &FileError{File: path, Reason: "its columns cannot be used", Err: err}
	}
	seen := map[int]bool{}
	for _, c := range d.Targets {
		if c < 0 || c >= columns || seen[c] {
			return &FileError{File: path, Reason: "its targets are not columns"}
		}
		seen[c] = true
	}
	return nil
}

// openChunks opens a chunk file as the table.
func (t *Table) openChunks(o *Options, in *input, paths []string) error {
	if len(paths) > 1 || o.ChunkFile != "" || o.TargetPath != "" || o.Weights != "" || len(o.Drop)+len(o.Keep)+len(o.Categorical) > 0 {
		return errors.New("dataset: a chunk file is opened alone, with no options but the target")
	}
	if in.file == nil || in.compressed {
		return &FileError{File: in.path, Reason: "a chunk file must be a file and not compressed"}
	}
	c, d, err := readChunkHeader(in.path, in.file)
	if err != nil {
		return err
	}
	t.rows, t.columns, t.targets, t.named, t.single = c.h.rows, d.Columns, d.Targets, d.Named, true
	t.cells = c
	t.report.TargetWhy = "as when it was written"
	if err := t.retarget(o); err != nil {
		return err
	}
	t.report.Duplicates = -1
	t.fillReport()
	t.close, in.file = in.file.Close, nil
	return nil
}

// retarget replaces the targets by those in the options.
func (t *Table) retarget(o *Options) error {
	if o.NoTarget {
		t.targets, t.report.TargetWhy = nil, "as asked"
		return nil
	}
	if len(o.Target) == 0 {
		return nil
	}
	names := t.names()
	b := newBuilder(o, names)
	t.targets, t.report.TargetWhy = nil, "as asked"
	if err := t.mark(o, b, names); err != nil {
		return err
	}
	if len(t.targets) == len(t.columns) {
		return errors.New("dataset: there is no column left for inputs")
	}
	return nil
}

// Len returns the number of rows.
func (c *chunkCells) Len() int { return c.h.rows }

// Dim returns the number of columns.
func (c *chunkCells) Dim() int { return c.h.columns }

// Open starts a pass.
func (c *chunkCells) Open(context.Context) (kernel.Cursor, error) {
	return &chunkCursor{chunkCells: c}, nil
}

// chunkCursor reads and checks one chunk after the other.
type chunkCursor struct {
	*chunkCells
	at    int    // next row
	bytes []byte // of the chunk of row at
	first int    // its first row
	last  int    // the row after it, 0 before the first chunk is read
}

// Next returns the next rows as *kernel.Points[float64].
func (c *chunkCursor) Next(ctx context.Context, max int, reuse kernel.Rows) (kernel.Rows, error) {
	n := min(max, c.h.rows-c.at)
	if n == 0 {
		return nil, io.EOF
	}
	d := c.h.columns
	p := data.ReusePoints[float64](n, d, reuse)
	out := p.Data()[:0]
	for len(out) < n*d {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if c.at >= c.last {
			if err := c.load(); err != nil {
				return nil, err
			}
		}
		take := min(n-len(out)/d, c.last-c.at)
		from := c.bytes[(c.at-c.first)*d*8:]
		for i := range take * d {
			out = append(out, math.Float64frombits(binary.LittleEndian.Uint64(from[8*i:])))
		}
		c.at += take
	}
	return p, nil
}

// load reads the chunk that starts at row c.at.
func (c *chunkCursor) load() error {
	c.first, c.last = c.at, min(c.at+c.h.chunkRows, c.h.rows)
	size := (c.last-c.first)*c.h.columns*8 + 4
	if cap(c.bytes) < size {
		c.bytes = make([]byte, size)
	}
	c.bytes = c.bytes[:size]
	if _, err := c.r.ReadAt(c.bytes, chunkHeaderSize+c.h.offset(c.first)); err != nil {
		return &FileError{File: c.path, Reason: fmt.Sprintf("rows %d to %d cannot be read", c.first+1, c.last), Err: err}
	}
	cells := c.bytes[:size-4]
	if checksum(cells) != binary.LittleEndian.Uint32(c.bytes[size-4:]) {
		return &FileError{File: c.path, Reason: fmt.Sprintf("rows %d to %d are damaged", c.first+1, c.last)}
	}
	return c.checkCells(cells)
}

// checkCells verifies that numbers are finite or missing and that codes have a level.
func (c *chunkCursor) checkCells(cells []byte) error {
	for i := 0; len(cells) > 0; i++ {
		for col, codes := range c.codes {
			v := math.Float64frombits(binary.LittleEndian.Uint64(cells))
			cells = cells[8:]
			if v-v == 0 && (codes < 0 || v >= 0 && v < float64(codes) && v == float64(int(v))) || v != v {
				continue
			}
			return &data.CellError{File: c.path, Row: c.first + i + 1, Column: positional(col), Reason: fmt.Sprintf("a cell of %v is impossible", v)}
		}
	}
	return nil
}

// Close ends the pass.
func (c *chunkCursor) Close() error { return nil }
