package dataset

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/learners/data"
)

// rowReader yields the rows of one file with dense columns.
type rowReader interface {
	// columns returns the names of the columns, or nil if the file has none, and their number.
	columns() ([]string, int)
	// next adds the next row's cells to columns col0, col0+1, … of b. It
	// returns io.EOF after the last row.
	next(b *builder, col0 int) error
}

// describer is a rowReader that knows more of a column than the name. It returns the first cells
// of a column of texts, and nil for others.
type describer interface {
	describe(c int, col *columnBuilder) (texts [][]byte)
}

// Open reads files with the same columns into one table, the rows of the first file first. The
// path "-" is standard input. It returns a [*FileError], a [*data.CellError], an
// [*UnknownColumnError], or ctx.Err().
func Open(ctx context.Context, o Options, paths ...string) (*Table, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, errors.New("dataset: no file to open")
	}
	if o.TargetPath != "" && len(paths) > 1 {
		return nil, errors.New("dataset: a target file goes with one file of inputs")
	}
	if o.ChunkFile != "" {
		reason, err := atomicfile.Replaceable(o.ChunkFile, "chunk file", chunkMagic, append(slices.Clone(paths), o.TargetPath))
		if err != nil {
			reason, err = "it cannot be replaced", errors.Unwrap(err)
		}
		if reason != "" {
			return nil, &FileError{File: o.ChunkFile, Reason: reason, Err: err}
		}
	}
	t, err := open(ctx, o, paths)
	var labels *labelsError
	if errors.As(err, &labels) && !slices.Contains(append(paths, o.TargetPath), "-") {
		o.Categorical = append(slices.Clone(o.Categorical), labels.column)
		t, err = open(ctx, o, paths) // as texts
	}
	if err != nil && ctx.Err() != nil {
		return nil, ctx.Err() // for every error of a reader
	}
	return t, err
}

func open(ctx context.Context, o Options, paths []string) (*Table, error) {
	in, err := openFile(ctx, paths[0])
	if err != nil {
		return nil, err
	}
	defer in.close()
	t := &Table{report: Report{Files: paths, Compressed: in.compressed}}
	t.report.Format, t.report.FormatWhy = o.Format, "as asked"
	if o.Format == "" {
		t.report.Format, t.report.FormatWhy = detectFormat(paths[0], in.head())
	}
	o.Format = t.report.Format
	switch o.Format {
	case LibSVM:
		err = t.readLibSVM(ctx, &o, in, paths)
	case Chunks:
		err = t.openChunks(&o, in, paths)
	default:
		err = t.readDense(ctx, &o, in, paths)
	}
	if err != nil {
		return nil, err
	}
	if !slices.Contains(t.weights, 0) {
		return t, nil
	}
	counted, err := t.keep(ctx, "of weight 0", "all rows have the weight 0; give one a weight above 0", func(row int, _ []float64) bool { return t.weights[row] > 0 })
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return counted, nil
}

// readDense reads all files into the table.
func (t *Table) readDense(ctx context.Context, o *Options, in *input, paths []string) error {
	r, y, err := in.reader(o, &t.report)
	if err != nil {
		return err
	}
	targets := &targetFile{in, y}
	if o.TargetPath != "" {
		if targets, err = openTargets(ctx, o); err != nil {
			return err
		}
		defer targets.in.close()
	}
	names, err := t.name(r, targets)
	if err != nil {
		return &FileError{File: in.path, Reason: "its columns cannot be used", Err: err}
	}
	b, err := t.prepare(o, names, r, targets)
	if err != nil {
		return err
	}
	if err := t.readAll(ctx, o, b, r, targets, paths); err != nil {
		b.store.abort()
		return err
	}
	return t.finish(o, b)
}

// readAll reads the first file through r, then the others.
func (t *Table) readAll(ctx context.Context, o *Options, b *builder, r rowReader, targets *targetFile, paths []string) error {
	b.parts = parts{{paths[0], 0}}
	if err := readRows(ctx, b, r, targets); err != nil {
		return err
	}
	names, width := r.columns()
	for _, path := range paths[1:] {
		if err := readMore(ctx, o, b, path, names, width, targets.width()); err != nil {
			return err
		}
	}
	if b.rows == 0 {
		return &FileError{File: paths[0], Reason: "it has no rows; give a file with a row of data after the header"}
	}
	return nil
}

// readMore appends the rows of a further file.
func readMore(ctx context.Context, o *Options, b *builder, path string, names []string, width, targets int) error {
	in, err := openFile(ctx, path)
	if err != nil {
		return err
	}
	defer in.close()
	same := *o // as the first file was read
	if same.Header == HeaderAuto {
		same.Header = HeaderNo
		if names != nil {
			same.Header = HeaderYes
		}
	}
	r, y, err := in.reader(&same, &Report{})
	if err != nil {
		return err
	}
	more := &targetFile{in, y}
	moreNames, moreWidth := r.columns()
	if moreWidth != width || more.width() != targets || !slices.Equal(names, moreNames) {
		return &FileError{File: path, Reason: fmt.Sprintf("its columns, %s, are not those of the first file, %s",
			describeNames(moreNames, moreWidth+more.width()), describeNames(names, width+targets))}
	}
	b.parts = append(b.parts, part{path, b.rows})
	return readRows(ctx, b, r, more)
}

func describeNames(names []string, width int) string {
	if names == nil {
		return fmt.Sprintf("%d without names", width)
	}
	return quoted(names, 20, ", ")
}

// readRows reads r to the end, together with the targets if they are apart.
func readRows(ctx context.Context, b *builder, r rowReader, targets *targetFile) error {
	_, width := r.columns()
	for {
		if b.rows%1024 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		err := r.next(b, 0)
		if err != nil && err != io.EOF {
			return err
		}
		if targets.rowReader != nil {
			if more, terr := targets.next(b, width, err == io.EOF); !more {
				return terr
			}
		} else if err == io.EOF {
			return nil
		}
		if err := b.endRow(); err != nil {
			return err
		}
	}
}

// name returns the names of all columns, those of the target file last.
func (t *Table) name(r rowReader, targets *targetFile) ([]string, error) {
	names, width := r.columns()
	t.named = names != nil
	names = slices.Clone(names)
	for i := len(names); i < width; i++ {
		names = append(names, positional(i))
	}
	if targets.rowReader == nil {
		return names, nil
	}
	more, n := targets.columns()
	if more == nil {
		more = data.TargetNames(n)
	}
	return checkNames(append(names, more...))
}

// prepare makes the builder and decides everything that does not depend on the cells.
func (t *Table) prepare(o *Options, names []string, r rowReader, targets *targetFile) (*builder, error) {
	if len(names) > MaxColumns {
		return nil, fmt.Errorf("dataset: %d columns, the limit is %d", len(names), MaxColumns)
	}
	b := newBuilder(o, names)
	if err := t.mark(o, b, names); err != nil {
		return nil, err
	}
	if o.Model != nil {
		if err := t.follow(o.Model, b, names); err != nil {
			return nil, err
		}
	}
	_, width := r.columns()
	for c := range b.cols {
		src, at := r, c
		if c >= width {
			src, at = targets.rowReader, c-width
			if o.Model == nil && len(o.Target) == 0 {
				t.targets = append(t.targets, c)
			}
		}
		if d, ok := src.(describer); ok {
			if texts := d.describe(at, &b.cols[c]); texts != nil {
				b.describe(c, texts)
			}
		}
	}
	for _, c := range t.candidates(o, names) {
		b.cols[c].target = true
	}
	b.layout()
	t.single = b.single
	var err error
	b.store, err = newStore(o, len(b.row))
	return b, err
}

// newStore returns the store of the cells.
func newStore(o *Options, width int) (cellStore, error) {
	switch {
	case width == 0:
		return nil, errors.New("dataset: every column is dropped")
	case o.ChunkFile != "":
		return createChunks(o.ChunkFile, width)
	}
	return &memoryStore{width: width}, nil
}

// mark finds the columns that the options name.
func (t *Table) mark(o *Options, b *builder, names []string) error {
	for _, n := range o.Categorical {
		c, err := find("categorical", n, names)
		if err != nil {
			return err
		}
		b.cols[c].kind = data.Categorical
	}
	for _, n := range o.Drop {
		c, err := find("drop", n, names)
		if err != nil {
			return err
		}
		b.cols[c].dropped = true
	}
	for _, n := range o.Keep {
		c, err := find("keep", n, names)
		if err != nil {
			return err
		}
		if !b.cols[c].keep {
			b.cols[c].keep = true
			t.kept = append(t.kept, Kept{Name: names[c], column: c})
		}
	}
	if o.Weights != "" {
		c, err := find("weights", o.Weights, names)
		if err != nil {
			return err
		}
		if b.cols[c].dropped || b.cols[c].kind == data.Categorical {
			return fmt.Errorf("dataset: the column %q has the weights of rows and cannot be dropped or categorical", names[c])
		}
		b.cols[c].weights, t.weigher = true, names[c]
	}
	for _, n := range o.Target {
		c, err := find("target", n, names)
		if err != nil {
			return err
		}
		if slices.Contains(t.targets, c) {
			return fmt.Errorf("dataset: the target %q is named twice", names[c])
		}
		if b.cols[c].dropped {
			return fmt.Errorf("dataset: the column %q is dropped and cannot be a target", names[c])
		}
		if b.cols[c].weights {
			return fmt.Errorf("dataset: the column %q has the weights of rows and cannot be a target", names[c])
		}
		t.targets = append(t.targets, c)
	}
	return nil
}

// finish makes columns and cells from the rows and chooses the target.
func (t *Table) finish(o *Options, b *builder) (err error) {
	defer func() {
		if err != nil {
			b.store.abort()
		}
	}()
	t.rows, t.parts, t.weights = b.rows, b.parts, b.weights
	t.columns = make([]Column, 0, len(b.row))
	for c := range b.cols {
		col := &b.cols[c]
		if col.dropped {
			t.dropped = append(t.dropped, col.name)
		}
		if col.dropped || col.weights {
			continue
		}
		column, err := col.finish(b)
		if err != nil {
			return err
		}
		t.columns = append(t.columns, column)
	}
	if err := b.checkTotal(); err != nil {
		return err
	}
	for i, c := range t.targets {
		t.targets[i] = b.slot[c]
	}
	for i := range t.kept {
		t.kept[i].Cells = b.cols[t.kept[i].column].kept
	}
	if o.Weights != "" {
		t.report.Notes = append(t.report.Notes, "weights of rows in a column of their own")
	}
	if err := t.chooseTarget(o); err != nil {
		return err
	}
	if err := t.checkLabels(o, b); err != nil {
		return err
	}
	t.fillReport()
	return b.store.finish(t)
}

// follow gives the columns the kinds that they have in a model.
func (t *Table) follow(e *data.Encoding, b *builder, names []string) error {
	if e.Sparse != nil {
		return nil // which newPlan refuses
	}
	var others []string // neither dropped nor the weights
	var at []int
	for c, name := range names {
		col := &b.cols[c]
		apart := col.keep && (t.named && !slices.Contains(e.ColumnNames(), name) || !t.named && len(names) != e.Columns && len(names) != len(e.Inputs))
		if !col.weights && !col.dropped && !apart {
			others, at = append(others, name), append(at, c)
		}
	}
	// The weights of the training rows are no input.
	if i := slices.Index(others, e.Weights); i >= 0 && (t.named || len(others) == e.Columns+1) {
		others, at = slices.Delete(others, i, i+1), slices.Delete(at, i, i+1)
	}
	inputs, targets, err := locate(e, others, t.named)
	if err != nil {
		return err
	}
	for _, columns := range [][]int{inputs, targets} {
		for i, c := range columns {
			columns[i] = at[c]
		}
	}
	t.targets = targets
	for c := range b.cols {
		b.cols[c].dropped = b.cols[c].dropped || !b.cols[c].weights && !slices.Contains(inputs, c) && !slices.Contains(targets, c)
	}
	for i, c := range inputs {
		in, col := &e.Inputs[i], &b.cols[c]
		col.kind, col.model = in.Kind, true
		if in.Kind == data.Time && in.Dates != "" {
			if in.Dates == monthFirst && b.prefer == dayFirst {
				return fmt.Errorf("dataset: the model has read the dates of the column %q as %s, which DayFirst contradicts; leave DayFirst out, or write dates as 2024-01-31", in.Name, in.Dates)
			}
			col.times = &times{order: in.Dates, asked: true}
		}
	}
	if e.Task == data.Classification && e.ClassNumbers == nil && len(targets) > 0 {
		b.cols[targets[0]].kind = data.Categorical
	}
	return nil
}

func (t *Table) fillReport() {
	r := &t.report
	r.Rows, r.Columns, r.Dropped = t.rows, t.columns, t.dropped
	r.Target = []string{}
	for _, c := range t.targets {
		r.Target = append(r.Target, t.columns[c].Name)
	}
	r.Inputs = len(t.columns) - len(t.targets)
	if t.sparse != nil {
		r.Inputs = t.sparse.Dim()
	}
	var constant []string
	for i := range r.Columns {
		if c := &r.Columns[i]; c.Constant() {
			constant = append(constant, c.Name)
		}
	}
	if len(constant) > 0 {
		r.Notes = append(r.Notes, "constant: "+quoted(constant, 8, ", "))
	}
}
