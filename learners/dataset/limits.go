package dataset

import "github.com/bkbtuner/bkb/learners/data"

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
	// MaxArchive is the largest size in bytes of an archive (.npz, Parquet)
	// that must be held in memory because it is compressed by gzip or comes
	// from standard input.
	MaxArchive = 1 << 30
)
