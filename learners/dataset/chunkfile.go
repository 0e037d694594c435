package dataset

import (
	"bufio"
	"bytes"
	"cmp"
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
// into memory. It has a [chunkHeader], chunks of rows, each with the CRC-32C of its bytes, and
// a [description] as JSON. Numbers are little-endian. A chunk of p columns has
// max(1, 2²⁰/8p) rows. The header is written last, and the file is renamed after it is synced.
// A file with this name is therefore complete.
const (
	chunkMagic     = "BKBCELLS"
	chunkVersion   = 1
	chunkBytes     = 1 << 20 // about the size of a chunk
	maxDescription = 1 << 30
)

// chunkHeader is the start of a chunk file.
type chunkHeader struct {
	Magic   [8]byte
	Text    int64  // offset of the description
	Length  uint32 // of the description
	TextSum uint32 // CRC-32C of the description
}

var chunkHeaderSize = int64(binary.Size(chunkHeader{}))

// description is the JSON at the end of a chunk file.
type description struct {
	Version int      `json:"version"`
	Rows    int      `json:"rows"`
	Columns []Column `json:"columns"`
	Targets []int    `json:"targets"`
	Named   bool     `json:"named"`
	From    []string `json:"from"`
}

// checksum is the CRC-32C of b.
func checksum(b []byte) uint32 { return crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)) }

// chunkRows returns the number of rows of a chunk.
func chunkRows(width int) int { return max(1, chunkBytes/(8*width)) }

// chunkOffset returns the place of a row that starts a chunk, or the end of the last chunk.
func chunkOffset(row, width int) int64 {
	chunks := (row + chunkRows(width) - 1) / chunkRows(width)
	return chunkHeaderSize + 8*int64(row)*int64(width) + 4*int64(chunks)
}

// chunkWriter is the cellStore of a chunk file.
type chunkWriter struct {
	path  string
	tmp   *os.File
	w     *bufio.Writer // which keeps the first error
	width int
	chunk []byte
}

func createChunks(path string, width int) (*chunkWriter, error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), ".chunks-*")
	if err != nil {
		return nil, &FileError{File: path, Reason: "it cannot be created", Err: err}
	}
	w := &chunkWriter{path: path, tmp: tmp, w: bufio.NewWriterSize(tmp, 64<<10), width: width}
	w.chunk = make([]byte, 0, 8*width*chunkRows(width)+4)
	w.w.Write(make([]byte, chunkHeaderSize))
	return w, nil
}

func (w *chunkWriter) add(row []float64) error {
	for _, v := range row {
		w.chunk = binary.LittleEndian.AppendUint64(w.chunk, math.Float64bits(v))
	}
	if len(w.chunk) == 8*w.width*chunkRows(w.width) {
		return w.flush()
	}
	return nil
}

func (w *chunkWriter) flush() error {
	w.chunk = binary.LittleEndian.AppendUint32(w.chunk, checksum(w.chunk))
	_, err := w.w.Write(w.chunk)
	w.chunk = w.chunk[:0]
	return w.failed(err)
}

func (w *chunkWriter) failed(err error) error {
	if err == nil {
		return nil
	}
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
	t.cells, t.close = &chunkCells{path: w.path, r: f, rows: t.rows, columns: t.columns}, f.Close
	t.report.Duplicates = -1
	t.report.Notes = append(t.report.Notes, fmt.Sprintf("the cells are in %s", w.path))
	return nil
}

func (w *chunkWriter) complete(t *Table) error {
	if len(w.chunk) > 0 {
		if err := w.flush(); err != nil {
			return err
		}
	}
	text, err := json.Marshal(description{chunkVersion, t.rows, t.columns, t.targets, t.named, t.report.Files})
	if err != nil {
		return err
	}
	w.w.Write(text)
	if err := w.w.Flush(); err != nil {
		return err
	}
	h := chunkHeader{Text: chunkOffset(t.rows, w.width), Length: uint32(len(text)), TextSum: checksum(text)}
	copy(h.Magic[:], chunkMagic)
	if err := binary.Write(io.NewOffsetWriter(w.tmp, 0), binary.LittleEndian, h); err != nil {
		return err
	}
	if err := errors.Join(w.tmp.Sync(), w.tmp.Close()); err != nil {
		return err
	}
	return os.Rename(w.tmp.Name(), w.path)
}

func (w *chunkWriter) abort() {
	w.tmp.Close()
	os.Remove(w.tmp.Name())
}

// readDescription reads and checks the header and the description.
func readDescription(path string, r io.ReaderAt) (*description, error) {
	var h chunkHeader
	if err := binary.Read(io.NewSectionReader(r, 0, chunkHeaderSize), binary.LittleEndian, &h); err != nil {
		return nil, &FileError{File: path, Reason: "it ends in its header"}
	}
	if string(h.Magic[:]) != chunkMagic || h.Text < chunkHeaderSize || h.Length > maxDescription {
		return nil, &FileError{File: path, Reason: "it does not start as a chunk file"}
	}
	text, err := io.ReadAll(io.NewSectionReader(r, h.Text, int64(h.Length)))
	if err != nil || len(text) != int(h.Length) || checksum(text) != h.TextSum {
		return nil, &FileError{File: path, Reason: "its header or its description is damaged or cut off", Err: err}
	}
	var d description
	if err := json.Unmarshal(text, &d); err != nil {
		return nil, &FileError{File: path, Reason: "its description cannot be read", Err: err}
	}
	switch n := len(d.Columns); {
	case d.Version != chunkVersion:
		return nil, &FileError{File: path, Reason: fmt.Sprintf("its version is %d, this program reads %d", d.Version, chunkVersion)}
	case n < 1 || n > MaxColumns || d.Rows < 1 || d.Rows > 1<<48/(8*n+4) || h.Text != chunkOffset(d.Rows, n):
		return nil, &FileError{File: path, Reason: fmt.Sprintf("%d rows of %d columns are not what it holds", d.Rows, n)}
	}
	return &d, d.check(path)
}

// check verifies the columns and the targets.
func (d *description) check(path string) error {
	names := make([]string, len(d.Columns))
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
		if c < 0 || c >= len(names) || seen[c] {
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
	d, err := readDescription(in.path, in.file)
	if err != nil {
		return err
	}
	t.rows, t.columns, t.targets, t.named, t.single = d.Rows, d.Columns, d.Targets, d.Named, true
	t.cells = &chunkCells{path: in.path, r: in.file, rows: d.Rows, columns: d.Columns}
	t.report.TargetWhy = "as when it was written"
	if o.NoTarget || len(o.Target) > 0 {
		t.targets, t.report.TargetWhy = nil, "as asked"
		if err := t.mark(o, newBuilder(o, t.names()), t.names()); err != nil {
			return err
		}
	}
	if len(t.targets) == len(t.columns) {
		return errors.New("dataset: there is no column left for inputs")
	}
	t.report.Duplicates = -1
	t.fillReport()
	t.close, in.end = in.file.Close, nil
	return nil
}

// chunkCells are the cells of a chunk file, a source without targets.
type chunkCells struct {
	path    string
	r       io.ReaderAt
	rows    int
	columns []Column
}

func (c *chunkCells) Len() int     { return c.rows }
func (c *chunkCells) Dim() int     { return len(c.columns) }
func (c *chunkCells) Outputs() int { return 0 }

func (c *chunkCells) Open(ctx context.Context) (kernel.Cursor, error) { return data.OpenInputs(ctx, c) }

func (c *chunkCells) OpenPairs(context.Context) (data.PairCursor, error) {
	return &chunkCursor{chunkCells: c}, nil
}

// chunkCursor reads and checks one chunk after the other.
type chunkCursor struct {
	*chunkCells
	at    int       // rows given
	read  int       // rows read
	cells []float64 // of the last chunk
	left  []float64 // of them
	buf   []byte
}

// Next returns the next rows as *kernel.Points[float64].
func (c *chunkCursor) Next(ctx context.Context, max int, reuse *data.Block) (*data.Block, error) {
	n, d := min(max, c.rows-c.at), c.Dim()
	if n == 0 {
		return nil, io.EOF
	}
	reuse = cmp.Or(reuse, &data.Block{})
	p := data.ReusePoints[float64](n, d, reuse.X)
	for out := p.Data()[:n*d]; len(out) > 0; {
		if len(c.left) == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := c.load(); err != nil {
				return nil, err
			}
		}
		k := copy(out, c.left)
		out, c.left = out[k:], c.left[k:]
	}
	c.at += n
	reuse.X = p
	return reuse, nil
}

// load reads the next chunk. Its numbers must be finite or missing, and its codes have a level.
func (c *chunkCursor) load() error {
	d := c.Dim()
	first, last := c.read, min(c.read+chunkRows(d), c.rows)
	size := (last - first) * d * 8
	if c.buf == nil {
		c.buf, c.cells = make([]byte, size+4), make([]float64, size/8)
	}
	if _, err := c.r.ReadAt(c.buf[:size+4], chunkOffset(first, d)); err != nil {
		return &FileError{File: c.path, Reason: fmt.Sprintf("rows %d to %d cannot be read", first+1, last), Err: err}
	}
	if checksum(c.buf[:size]) != binary.LittleEndian.Uint32(c.buf[size:]) {
		return &FileError{File: c.path, Reason: fmt.Sprintf("rows %d to %d are damaged", first+1, last)}
	}
	c.read, c.left = last, c.cells[:size/8]
	if err := binary.Read(bytes.NewReader(c.buf[:size]), binary.LittleEndian, c.left); err != nil {
		return err
	}
	for i, v := range c.left {
		if !c.columns[i%d].possible(v) {
			return &data.CellError{File: c.path, Row: first + i/d + 1, Column: positional(i % d), Reason: fmt.Sprintf("a cell of %v is impossible", v)}
		}
	}
	return nil
}

// possible reports whether v can be a cell of the column.
func (c *Column) possible(v float64) bool {
	switch {
	case v != v:
		return true
	case c.Kind == data.Categorical:
		return v >= 0 && v < float64(len(c.Levels)) && v == math.Trunc(v)
	case c.Kind.IsNumber() && c.Values == 0: // all are missing
		return false
	}
	return v-v == 0
}

func (c *chunkCursor) Close() error { return nil }
