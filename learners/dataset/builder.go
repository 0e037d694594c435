package dataset

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/bkbtuner/bkb/learners/data"
)

// builder gathers a dense table row by row. Readers add the cells of a row and then end it.
type builder struct {
	file    string // of the row being read
	parts   parts
	line    int // of the row being read, 0 if the file has no lines
	cols    []columnBuilder
	slot    []int // of a column in row, −1 if it is dropped
	row     []float64
	rows    int // complete rows
	missing missingSet
	single  bool   // numbers must fit float32
	comma   bool   // numbers in texts have a decimal comma
	toUTF8  string // advice for text that is not
	open    bool   // which character is decimal was not asked
	point   []byte // of the number that parse reads
	prefer  dateOrder
	store   cellStore
	weights []float64 // of rows, if a column has them
	held    int64     // bytes of the rows
	most    int64     // allowed in memory, 0 for no limit
}

// cellStore stores rows and makes a source of them.
type cellStore interface {
	add(row []float64) error
	finish(t *Table) error
	abort()
}

func newBuilder(o *Options, names []string) *builder {
	b := &builder{
		cols: make([]columnBuilder, len(names)), slot: make([]int, len(names)),
		missing: o.missingSet(), prefer: o.prefer(), single: o.Float32 || o.ChunkFile != "",
	}
	if o.ChunkFile == "" {
		b.most = o.MaxMemory
	}
	for i, n := range names {
		b.cols[i].name = n
	}
	return b
}

// layout assigns every column that is not dropped its place in the stored rows.
func (b *builder) layout() {
	width := 0
	for c := range b.cols {
		b.slot[c] = -1
		if !b.cols[c].dropped && !b.cols[c].weights {
			b.slot[c] = width
			width++
		}
	}
	b.row = make([]float64, width)
}

// token adds the cell of column c from its text.
func (b *builder) token(c int, s []byte) error {
	col := &b.cols[c]
	s = trim(s)
	if b.hold(c, s); col.dropped {
		col.last = append(col.last[:0], s...)
		return nil
	}
	if b.missing.has(s) {
		return b.none(c)
	}
	if col.kind == "" && !col.undated && col.numbers+col.texts == 0 {
		col.detect([][]byte{s}, b.prefer)
	}
	switch col.kind {
	case data.Categorical:
		return b.text(c, s)
	case data.Time:
		if v, ok := col.times.parse(s); ok {
			return b.time(c, v)
		}
		as := "a time"
		if col.times.order != "" {
			as += " with dates as " + col.times.order
		}
		return b.fault(c, fmt.Sprintf("%s is not %s, which the column has; set DayFirst if days come first, %s", excerpt(s), as, textRemedy))
	case data.Boolean:
		if v, ok := truth(s); ok {
			return b.number(c, v)
		}
		if s[0] != '0' && s[0] != '1' || len(s) > 1 {
			return b.fault(c, excerpt(s)+" is neither true nor false, which the column has; "+textRemedy)
		}
	}
	v, err := b.parse(s)
	numeric := col.model && col.kind == data.Numeric
	switch {
	case err == nil:
		if col.target {
			col.addLabel(v, s)
		}
		return b.number(c, v)
	case err == errTooLarge:
		return b.fault(c, excerpt(s)+" "+err.Error())
	case isInfinity(s):
		return b.fault(c, excerpt(s)+" is infinite; name it in Missing if it stands for a missing value")
	case !numeric:
		return b.text(c, s)
	}
	if v, ok := truth(s); ok {
		return b.number(c, v)
	}
	if decoratedNumber.Match(s) {
		return b.fault(c, b.unread(string(s)))
	}
	return b.fault(c, excerpt(s)+" is not a number, and the model has numbers in this column; name it in Missing if it stands for a missing value")
}

// parse reads a number with a decimal point, or with a decimal comma where the file has them.
func (b *builder) parse(s []byte) (float64, error) {
	if !b.comma {
		return parseNumber(s)
	}
	if bytes.IndexByte(s, '.') >= 0 {
		return 0, errNotNumber
	}
	b.point = append(b.point[:0], s...)
	if i := bytes.IndexByte(s, ','); i >= 0 {
		b.point[i] = '.'
	}
	return parseNumber(b.point)
}

// textRemedy is the advice for a text that a column cannot have.
const textRemedy = "name it in Missing if it stands for a missing value, or the column in Categorical"

// hold keeps the first of the texts that a cell of column c is given as.
func (b *builder) hold(c int, s []byte) {
	if col := &b.cols[c]; col.keep && len(col.kept) == b.rows {
		col.kept = append(col.kept, string(s))
		b.held += int64(len(s)) + 16
	}
}

// text adds a text to column c.
func (b *builder) text(c int, s []byte) error {
	if b.hold(c, s); b.cols[c].dropped {
		return nil
	}
	if b.cols[c].weights {
		return b.fault(c, excerpt(s)+" is not a number, and weights of rows are numbers ≥ 0")
	}
	code, err := b.cols[c].addText(s, b.rows+1, b.line)
	if err != nil && !utf8.Valid(s) {
		err = fmt.Errorf("%w%s", err, b.toUTF8)
	}
	if err != nil {
		return b.fault(c, err.Error())
	}
	b.row[b.slot[c]] = code
	return nil
}

// value adds a number that has a text of its own, which it is as a category.
func (b *builder) value(c int, v float64, text func() []byte) error {
	col := &b.cols[c]
	if col.kind == data.Categorical {
		return b.text(c, text())
	}
	if col.keep {
		b.hold(c, text())
	}
	return b.number(c, v)
}

// integer adds an integer to column c. As a category it keeps all its digits.
func integer[T int64 | uint64](b *builder, c int, v T) error {
	b.cols[c].odd = b.cols[c].odd || b.cols[c].target && math.Abs(float64(v)) >= 1<<53
	return b.value(c, float64(v), func() []byte { return fmt.Append(nil, v) })
}

// truth adds a truth value to column c.
func (b *builder) truth(c int, v bool) error {
	number := 0.0
	if v {
		number = 1
	}
	return b.value(c, number, func() []byte { return strconv.AppendBool(nil, v) })
}

// time adds a time to column c, in seconds. It is no weight.
func (b *builder) time(c int, v float64) error {
	if b.cols[c].weights {
		return b.text(c, []byte(timeText(v)))
	}
	return b.value(c, v, func() []byte { return []byte(timeText(v)) })
}

// number adds a number to column c, where NaN means missing.
func (b *builder) number(c int, v float64) error {
	col := &b.cols[c]
	if v != v {
		return b.none(c)
	}
	if col.keep {
		b.hold(c, []byte(formatNumber(v)))
	}
	switch {
	case col.dropped:
		return nil
	case col.weights && (v < 0 || v-v != 0):
		return b.fault(c, fmt.Sprintf("the weight of the row is %g; weights are finite numbers ≥ 0", v))
	case col.weights:
		b.weights = append(b.weights, v)
		return nil
	case v-v != 0:
		return b.fault(c, "the value is infinite; write a finite or a missing one, or drop the column")
	case col.kind == data.Categorical:
		return b.text(c, []byte(formatNumber(v)))
	case b.single && math.Abs(v) > math.MaxFloat32:
		return b.fault(c, fmt.Sprintf("%g is too large for a number of 32 bits", v))
	}
	b.row[b.slot[c]] = v
	col.addNumber(v, b.rows+1, b.line)
	return nil
}

// none adds a missing cell to column c.
func (b *builder) none(c int) error {
	b.hold(c, nil)
	col := &b.cols[c]
	switch {
	case col.dropped:
		return nil
	case col.weights:
		return b.fault(c, "the weight of the row is missing; write a number ≥ 0")
	case col.missing == 0:
		col.firstMissing = place{b.rows + 1, b.line}
	}
	col.missing++
	b.row[b.slot[c]] = math.NaN()
	return nil
}

func (b *builder) endRow() error {
	b.rows++
	if b.held += 8 * int64(len(b.row)); b.most > 0 && b.held > b.most {
		return &FileError{File: b.file, Reason: fmt.Sprintf("its first %d rows need more than the %d bytes of memory that a table may take (MaxMemory); set ChunkFile to hold dense rows in a file, or read fewer", b.rows, b.most)}
	}
	return b.store.add(b.row)
}

func (b *builder) fault(c int, reason string) error {
	return &data.CellError{File: b.file, Row: b.next(), Line: b.line, Column: b.cols[c].name, Reason: reason}
}

// next is the number of the row being read in its file, from 1.
func (b *builder) next() int {
	_, row := b.parts.at(b.rows + 1)
	return row
}

// parts are the files of a table, with the number of rows before each.
type parts []part

type part struct {
	file   string
	before int
}

// at returns the file of a row, and the number of the row in it. Numbers count from 1.
func (p parts) at(row int) (file string, within int) {
	for i := len(p) - 1; i >= 0; i-- {
		if row > p[i].before {
			return p[i].file, row - p[i].before
		}
	}
	return "", row
}

// trim removes spaces and tabs at both ends.
func trim(s []byte) []byte { return bytes.Trim(s, " \t") }
