package dataset

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/learners/data"
)

// readLibSVM reads sparse rows "label index:value index:value … # comment".
// Indices count from 1, or from 0 with ZeroBased, and increase strictly. Labels
// are numbers or texts. Features that a row does not name are 0.
func (t *Table) readLibSVM(ctx context.Context, o *Options, in *input, paths []string) error {
	if o.ChunkFile != "" {
		return fmt.Errorf("dataset: chunk files hold dense data; sparse rows stay in memory")
	}
	texts := slices.Equal(o.Categorical, []string{"label"}) // as Open asks for
	if len(o.Target)+len(o.Drop)+len(o.Keep) > 0 || len(o.Categorical) > 0 && !texts || o.TargetPath != "" || o.Weights != "" {
		return fmt.Errorf("dataset: libsvm files have no named columns: Target, TargetPath, Drop, Keep, Categorical and Weights do not apply")
	}
	b := newBuilder(o, []string{"label"})
	b.layout()
	b.store = &memoryStore{width: 1}
	b.single = o.Float32
	b.cols[0].target = !o.NoTarget && o.Model == nil
	if e := o.Model; texts || e != nil && e.Task == data.Classification && e.ClassNumbers == nil {
		b.cols[0].kind = data.Categorical
	}
	var err error
	if o.Float32 {
		err = readSparse[float32](ctx, t, o, b, in, paths)
	} else {
		err = readSparse[float64](ctx, t, o, b, in, paths)
	}
	if err != nil {
		return err
	}
	col, err := b.cols[0].finish(b)
	if err != nil {
		return err
	}
	t.rows, t.parts, t.single, t.columns = b.rows, b.parts, b.single, []Column{col}
	t.report.TargetWhy = "as asked"
	if !o.NoTarget {
		t.targets, t.report.TargetWhy = []int{0}, "libsvm lines start with it"
	}
	if err := t.checkLabels(o, b); err != nil {
		return err
	}
	if t.sparse.Dim() == 0 {
		return fmt.Errorf("dataset: no row has a feature")
	}
	if err := b.store.finish(t); err != nil {
		return err
	}
	t.report.Duplicates = -1
	t.fillReport()
	return nil
}

func readSparse[T kernel.Float](ctx context.Context, t *Table, o *Options, b *builder, in *input, paths []string) error {
	s := &sparseRows[T]{ptr: []int{0}, first: 1, limit: cmp.Or(o.Features, MaxFeatures)}
	if o.ZeroBased {
		s.first = 0
	}
	if err := s.read(ctx, in, b); err != nil {
		return err
	}
	for _, path := range paths[1:] {
		more, err := openFile(ctx, path)
		if err != nil {
			return err
		}
		err = s.read(ctx, more, b)
		more.close()
		if err != nil {
			return err
		}
	}
	if b.rows == 0 {
		return &FileError{File: in.path, Reason: "it has no rows; give a file with a row of data"}
	}
	var err error
	t.report.Stored = len(s.val)
	t.sparse, err = kernel.NewCSR(b.rows, cmp.Or(o.Features, s.dim), s.ptr, s.col, s.val)
	return err // never happens, as parse has checked
}

// sparseRows gathers compressed rows.
type sparseRows[T kernel.Float] struct {
	ptr   []int
	col   []int32
	val   []T
	dim   int // largest column + 1
	first int // the index that the first feature has
	limit int // number of features allowed
}

func (s *sparseRows[T]) read(ctx context.Context, in *input, b *builder) error {
	recs := newRecords(in.r, ',')
	b.file = in.path
	b.parts = append(b.parts, part{in.path, b.rows})
	for {
		if b.rows%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		line, err := recs.readLine()
		if err == io.EOF {
			return nil
		} else if err != nil {
			return &FileError{File: in.path, Reason: "it cannot be read", Err: err}
		}
		b.line = recs.next
		line, _, _ = bytes.Cut(line, []byte("#"))
		if line = trim(line); len(line) == 0 {
			continue
		}
		if err := s.parse(line, b); err != nil {
			return err
		}
		b.held += 12 * int64(len(s.val)-s.ptr[len(s.ptr)-1])
		if err := b.endRow(); err != nil {
			return err
		}
		s.ptr = append(s.ptr, len(s.val))
	}
}

// parse adds one row that is not empty.
func (s *sparseRows[T]) parse(line []byte, b *builder) error {
	label, rest := word(line)
	if bytes.IndexByte(label, ':') >= 0 {
		return b.fault(0, fmt.Sprintf("%s is not a label", excerpt(label)))
	}
	if bytes.IndexByte(label, ',') >= 0 {
		return b.fault(0, fmt.Sprintf("%s are several labels, which cannot be read", excerpt(label)))
	}
	if err := b.token(0, label); err != nil {
		return err
	}
	previous := -1
	for len(rest) > 0 {
		var feature []byte
		feature, rest = word(rest)
		c, v, reason := s.feature(feature, previous)
		if reason == "" && b.single && math.Abs(v) > math.MaxFloat32 {
			reason = "is too large for a number of 32 bits"
		}
		if reason != "" {
			return &data.CellError{File: b.file, Row: b.next(), Line: b.line, Reason: excerpt(feature) + " " + reason}
		}
		previous = c
		if v != 0 {
			s.col = append(s.col, int32(c))
			s.val = append(s.val, T(v))
		}
		s.dim = max(s.dim, c+1)
	}
	return nil
}

// feature reads index:value. reason says why it is wrong.
func (s *sparseRows[T]) feature(f []byte, previous int) (c int, v float64, reason string) {
	index, value, ok := bytes.Cut(f, []byte(":"))
	if !ok || len(index) == 0 || !digits(index) {
		if bytes.HasPrefix(f, []byte("qid:")) {
			return 0, 0, "is a query of a ranking problem, which cannot be read"
		}
		return 0, 0, "is not a feature such as \"7:0.5\""
	}
	c, err := strconv.Atoi(string(index))
	if c -= s.first; err != nil {
		c = math.MaxInt
	}
	switch {
	case c < 0:
		return 0, 0, "has index 0, indices count from 1; set ZeroBased if they count from 0"
	case c >= s.limit:
		return 0, 0, fmt.Sprintf("is beyond the %d features", s.limit)
	case c <= previous:
		return 0, 0, "is not after the feature before; indices must increase"
	}
	v, err = parseNumber(value)
	switch {
	case err == nil:
		return c, v, ""
	case err == errTooLarge:
		return 0, 0, err.Error()
	case isInfinity(value) || strings.EqualFold(string(value), "nan") || len(value) == 0:
		return 0, 0, "has no finite value; sparse rows cannot have missing values"
	}
	return 0, 0, "has a value that is not a number"
}

// word cuts the first word off a trimmed line.
func word(line []byte) (first, rest []byte) {
	i := bytes.IndexAny(line, " \t")
	if i < 0 {
		return line, nil
	}
	return line[:i], trim(line[i:])
}
