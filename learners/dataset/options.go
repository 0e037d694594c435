package dataset

import "fmt"

// Format is a kind of file.
type Format string

// The formats that Open reads. Each may be compressed by gzip.
const (
	CSV     Format = "csv"     // text with a delimiter: CSV, TSV, white space
	LibSVM  Format = "libsvm"  // "label index:value …", sparse
	NPY     Format = "npy"     // one NumPy array
	NPZ     Format = "npz"     // several NumPy arrays
	Parquet Format = "parquet" // flat columns
	IDX     Format = "idx"     // the format of MNIST
	Chunks  Format = "chunks"  // our own, see [Options.ChunkFile]
)

// Header says whether the first record of a text file holds names.
type Header string

// The values of Options.Header.
const (
	HeaderAuto Header = "" // decide by the first rows
	HeaderYes  Header = "yes"
	HeaderNo   Header = "no"
)

// Whitespace as Options.Delimiter stands for runs of spaces and tabs.
const Whitespace = ' '

// Options say how files are read. The zero Options detect everything.
//
// A column is named by its name, or by its position from 1, from the end if
// negative: "3", "-1". Columns of files without names are called "column 1" and
// so on.
type Options struct {
	// Format of the files; empty: by content, then by name.
	Format Format
	// Delimiter of text files: ',', ';', '\t', '|', Whitespace, any other
	// ASCII character; 0: by the first lines.
	Delimiter rune
	// Header of text files.
	Header Header
	// Target are the columns to predict. Empty: the column called target,
	// label, class, outcome or y; else the first column if it has two values
	// and the last has more; else the last. The Report says which and why.
	Target []string
	// NoTarget says that there are no targets: all columns are inputs.
	NoTarget bool
	// TargetPath is a file that holds the targets alone, row by row, in any
	// dense format: the labels of MNIST, for example.
	TargetPath string
	// Drop are columns to forget.
	Drop []string
	// Categorical are columns that are categories although they look like
	// numbers.
	Categorical []string
	// Missing are the texts that stand for a missing value. Nil: the empty
	// text, "?", and NA, N/A, NaN, null in any case.
	Missing []string
	// Float32 stores cells in 4 bytes instead of 8.
	Float32 bool
	// ChunkFile, if not empty, is a file to write the cells to, as float32,
	// instead of holding them in memory: for dense data larger than memory.
	// Open reads it again as format Chunks. An existing chunk file, or an empty
	// file, is replaced once all is written; any other is a [*FileError].
	ChunkFile string
	// ZeroBased says that features in libsvm files count from 0. It is never
	// guessed: two files of one data set could be guessed differently.
	ZeroBased bool
	// Features is the number of features of libsvm files; 0: the largest
	// index. Indices beyond it are errors.
	Features int
	// Array and TargetArray are the arrays of an .npz file. Empty: the array
	// called x, data, features or inputs, or the only one; the one called y,
	// target(s), label(s), or none.
	Array, TargetArray string
}

func (o *Options) check() error {
	switch o.Format {
	case "", CSV, LibSVM, NPY, NPZ, Parquet, IDX, Chunks:
	default:
		return fmt.Errorf("dataset: unknown format %q; there are csv, libsvm, npy, npz, parquet, idx, chunks", o.Format)
	}
	switch o.Header {
	case HeaderAuto, HeaderYes, HeaderNo:
	default:
		return fmt.Errorf("dataset: header %q is none of \"yes\", \"no\" and empty", o.Header)
	}
	if d := o.Delimiter; d < 0 || d > 127 || d == '"' || d == '\n' || d == '\r' || d == '.' || d == '-' || d == '+' || d >= '0' && d <= '9' {
		return fmt.Errorf("dataset: %q cannot be a delimiter", d)
	}
	if o.NoTarget && (len(o.Target) > 0 || o.TargetPath != "" || o.TargetArray != "") {
		return fmt.Errorf("dataset: NoTarget contradicts a target")
	}
	if o.TargetPath != "" && len(o.Target) > 0 {
		return fmt.Errorf("dataset: both a target file and target columns are given")
	}
	if o.Features < 0 || o.Features > MaxFeatures {
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
	switch len(s) {
	case 0:
		return true
	case 1:
		return s[0] == '?'
	case 2:
		return foldEqual(s, "na")
	case 3:
		return foldEqual(s, "nan") || foldEqual(s, "n/a")
	case 4:
		return foldEqual(s, "null")
	}
	return false
}
