// Package dataset reads files into tables, and cleans and encodes them for learners.
//
//	files ──Open──► Table ──FitEncoding(training rows)──► data.Encoding, kept in the model
//	                  │                                       │
//	                  └───────────────Encode──────────────────┴──► data.Source ──data.Subset──► parts
//
// # Tables
//
// [Open] reads CSV and similar text, JSON, libsvm, .npy, .npz, Parquet and IDX files, with or
// without gzip. It reads each file once from start to end. The [Report] lists every
// guess (format, delimiter, header, target, kinds of columns) with its reason, and
// [Options] can override each. A [Table] holds numbers, with NaN for missing cells, and
// codes of categories.
//
// A number is decimal, with a sign, digits, a point and an exponent. NaN is a missing
// value. Infinities, 0x10 and 1_000 are refused. A column holds either numbers or
// texts. If it mixes them, the error names the exceptional cell.
//
// # Encodings
//
// A [data.Encoding] turns a table into inputs X, n×d, and targets Y, n×c. It takes
// z-scores of numbers, encodes categories as one-hot, and codes classes as ±1. It is
// fitted to training rows only, and its notes list the dropped inputs and the filled
// values. JSON keeps it to the bit. It checks the columns of all data that it is
// applied to later.
//
// # Sources
//
// Package learners/data defines sources. The source of a table is in memory
// ([data.Memory]), or it is read from a chunk file and encoded at every pass, so that
// memory does not limit n. Both give the same numbers to the bit at equal precision.
// libsvm rows stay sparse from the file to the kernel.
//
// # Bad data
//
//	missing cells          CellError with row and column, or EncodingOptions.Missing
//	ragged rows            CellError with row, line and both counts
//	text among numbers     CellError with row, line, column and value
//	infinite, too large    CellError with row, line, column and value
//	wrong column names     UnknownColumnError with names that look alike
//	other columns later    ColumnsError with the missing and the unknown ones
//	constant columns       dropped as inputs with a note, an error as targets
//	one class only         an error
//	duplicate rows         kept and counted in the report
//	huge claims of headers FileError, see the limits from MaxColumns on
//
// A library reads Parquet, and it trusts the headers of pages. The other readers take
// memory for the contents of a file, and for at most MaxColumns columns if it claims
// so.
//
// # Costs
//
// Memory is 8 bytes a cell for the table, and 8, or 4 with Float32, for the encoded
// inputs. A chunk file takes about 3 MiB however long it is, plus the levels of
// categories. Reading text costs about 100 ns a number.
package dataset
