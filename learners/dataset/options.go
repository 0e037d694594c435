package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/bkbtuner/bkb/learners/data"
)

// Format is a kind of file.
type Format string

// These are the formats that Open reads. Each may be compressed by gzip.
const (
	CSV     Format = "csv"     // text with a delimiter, such as CSV, TSV or white space
	LibSVM  Format = "libsvm"  // "label index:value …", sparse
	NPY     Format = "npy"     // one NumPy array
	NPZ     Format = "npz"     // several NumPy arrays
	Parquet Format = "parquet" // flat columns
	JSON    Format = "json"    // records, in an array or one after the other
	IDX     Format = "idx"     // the format of MNIST
	Chunks  Format = "chunks"  // our own, see [Options.ChunkFile]
)

// Header says whether the first record of a text file holds names.
type Header string

// These are the values of Options.Header.
const (
	HeaderAuto Header = "" // decide from the first rows
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// Whitespace as Options.Delimiter stands for runs of spaces and tabs.
const Whitespace = ' '

// Options say how files are read. The zero Options detect everything.
//
// A column is named by its name or by its position. Positions count from 1, or from the end if
// negative, such as "3" or "-1". Columns of files without names are called "column 1" and so on.
type Options struct {
	// Format is the format of the files. If empty, it is detected from the content,
	// then from the name.
	Format Format
	// Model is the encoding of the model that the data are for, or nil. The columns then
	// have its kinds, and columns that it ignores are not read.
	Model *data.Encoding
	// Task is the task that the target is for, or empty if its cells decide. Labels of
	// classes are texts unless all are plain integers.
	Task data.Task
	// DayFirst says that dates such as 2/1/2026 are in January.
	DayFirst bool
	// Decimal is the character of decimal fractions in text, '.' or ','. Delimiter is that of
	// text files, such as ',' or Whitespace. If 0, they are detected from the first lines.
	Decimal, Delimiter rune
	// Header says whether text files have a header.
	Header Header
	// Target are the columns to predict. If empty, it is the column called target,
	// label, class, outcome or y. If there is none, it is the first column if that has
	// two values and the last has more. Otherwise it is the last column.
	Target []string
	// NoTarget says that there are no targets and all columns are inputs.
	NoTarget bool
	// TargetPath is a file that holds only the targets, row by row, in any dense format.
	TargetPath string
	// Weights is the column with the weights of rows, or empty for none. They are numbers of
	// at least 0, and rows of weight 0 are not in the table, nor is the column.
	Weights string
	// Drop lists columns to ignore.
	Drop []string
	// Keep lists columns whose cells the table also has as texts, see [Table.Kept]. With a
	// Model they need not be among its columns.
	Keep []string
	// Categorical lists columns that are categories although they look like numbers.
	Categorical []string
	// Missing lists the texts that mean a missing value. If nil, these are the empty
	// text, "?", and NA, N/A, #N/A, <NA>, NaN, NaT and null in any case.
	Missing []string
	// Float32 encodes inputs in 4 bytes instead of 8.
	Float32 bool
	// ChunkFile, if not empty, is a file for the cells of dense data that do not fit into
	// memory. Inputs are encoded as with Float32. Open reads it again as format Chunks. An
	// existing chunk file or an empty file is replaced once all cells are written, and any
	// other file is a [*FileError].
	ChunkFile string
	// MaxMemory is the number of bytes of memory that rows may take. 0 means no limit.
	MaxMemory int64
	// ZeroBased says that features in libsvm files count from 0. It is never guessed,
	// because the guesses for two files of one data set could differ.
	ZeroBased bool
	// Features is the number of features of libsvm files, or 0 for the largest index.
	// Larger indices are errors.
	Features int
	// Array and TargetArray name the arrays of an .npz file. If empty, the inputs are
	// the array called x, data, features or inputs, or the only one. The targets are
	// the array called y, target, targets, label or labels, or none.
	Array, TargetArray string
}

// prefer is the order of dates that the cells leave open.
func (o *Options) prefer() dateOrder {
	if o.DayFirst {
		return dayFirst
	}
	return ""
}

func (o *Options) check() error {
	d := o.Delimiter
	switch {
	case !slices.Contains([]Format{"", CSV, LibSVM, NPY, NPZ, Parquet, JSON, IDX, Chunks}, o.Format):
		return fmt.Errorf("dataset: unknown format %q; use csv, libsvm, npy, npz, parquet, json, idx or chunks", o.Format)
	case !slices.Contains([]Header{HeaderAuto, HeaderYes, HeaderNo}, o.Header):
		return fmt.Errorf("dataset: header %q, want \"yes\", \"no\" or empty", o.Header)
	case d < 0 || d > 127 || d != 0 && strings.ContainsRune("\"\n\r.-+0123456789", d):
		return fmt.Errorf("dataset: %q cannot be a delimiter", d)
	case o.Decimal != 0 && o.Decimal != '.' && o.Decimal != ',' || o.Decimal == ',' && d == ',':
		return fmt.Errorf("dataset: decimal character %q with delimiter %q; it is '.' or ',', and not the delimiter", o.Decimal, d)
	case o.NoTarget && (len(o.Target) > 0 || o.TargetPath != "" || o.TargetArray != ""):
		return fmt.Errorf("dataset: NoTarget contradicts a target")
	case o.TargetPath != "" && len(o.Target) > 0:
		return fmt.Errorf("dataset: both a target file and target columns are given")
	case o.Features < 0 || o.Features > MaxFeatures:
		return fmt.Errorf("dataset: %d features, want 0 to %d", o.Features, MaxFeatures)
	}
	return nil
}

// missingSet recognises the texts of missing values.
type missingSet struct {
	auto  bool
	texts map[string]bool
}

func (o *Options) missingSet() missingSet {
	if o.Missing == nil {
		return missingSet{auto: true}
	}
	m := missingSet{texts: map[string]bool{}}
	for _, s := range o.Missing {
		m.texts[s] = true
	}
	return m
}

func (m missingSet) has(s []byte) bool {
	if !m.auto {
		return m.texts[string(s)]
	}
	if len(s) == 0 || len(s) > 4 || '0' <= s[0] && s[0] <= '9' {
		return len(s) == 0
	}
	return slices.Contains([]string{"?", "na", "nan", "n/a", "nat", "null", "#n/a", "<na>"}, strings.ToLower(string(s)))
}

// These are the limits of a file. A file beyond a limit is refused with an error that
// names the limit, so that a broken or hostile header cannot exhaust memory.
const (
	// MaxColumns is the largest number of dense columns, targets included.
	MaxColumns = 1 << 16
	// MaxFeatures is the largest number of features of sparse rows.
	MaxFeatures = data.MaxSparseInputs
	// MaxLevels is the largest number of different texts in a categorical
	// column. A column with more is of kind Text and must be dropped.
	MaxLevels = 10_000
	// MaxClasses is the largest number of classes of a target.
	MaxClasses = 1_000
	// MaxName is the largest length in bytes of a column's name.
	MaxName = 128
	// MaxText is the largest length in bytes of a text in a cell.
	MaxText = 4 << 10
	// MaxLine is the largest length in bytes of a record of a text file.
	MaxLine = 16 << 20
	// MaxArchive is the largest size in bytes of an archive (.npz, Parquet) that must be held in
	// memory because it is compressed by gzip or comes from standard input.
	MaxArchive = 1 << 30
)
