// Package dataset reads files into tables, and cleans and encodes them for learners.
//
//	files ──Open──► Table ──FitEncoding(training rows)──► data.Encoding, kept in the model
//	                  │                                       │
//	                  └───────────────Encode──────────────────┴──► data.Source ──data.Subset──► parts
//
// # Tables
//
// [Open] reads CSV and the like, libsvm, .npy, .npz, Parquet and IDX files, each
// perhaps compressed by gzip, once from start to end. What it had to guess
// (format, delimiter, header, target, kinds of columns) stands with the reason in
// the [Report], and every guess can be overruled in [Options]. A [Table] holds
// numbers, NaN for what is missing, and codes of categories.
//
// A number is decimal: sign, digits, point, exponent. NaN is a missing value;
// infinities are refused, and so are 0x10 and 1_000. A column holds numbers or
// texts; one that mixes them is refused with the cell that is the exception.
//
// # Encodings
//
// A [data.Encoding] makes inputs X, n×d, and targets Y, n×c, of a table: z-scores,
// one-hot categories, ±1 for classes. It is fitted on training rows only, says
// in its notes what it dropped and filled, survives JSON bit by bit, and checks
// the columns of whatever data it is applied to later.
//
// # Sources
//
// Package learners/data says what a source is. That of a table is in memory
// ([data.Memory]), or read from a chunk file and encoded at every pass, so that n is
// not bounded by memory. Both give the same numbers to the bit, for equal precision.
// libsvm rows stay sparse from the file to the kernel.
//
// # Bad data
//
//	missing cells          CellError with row and column, or EncodingOptions.Missing
//	ragged rows            CellError with row, line and both counts
//	text among numbers     CellError with row, line, column and value
//	infinite, too large    CellError with row, line, column and value
//	wrong column names     UnknownColumnError with names that look alike
//	other columns later    ColumnsError with what is missing, what is unknown
//	constant columns       dropped as inputs, noted; an error as targets
//	one class only         an error
//	duplicate rows         kept and counted in the report
//	huge claims of headers FileError; see the limits MaxColumns and following
//
// Parquet is read by a library that trusts the headers of pages; the other readers
// take memory for what a file contains, and for MaxColumns columns if it claims so.
//
// # Costs
//
// Memory is 8 bytes a cell, 4 with Float32, once for the table and once for the
// encoded inputs; a chunk file takes about 3 MiB however long it is, plus the
// levels of categories. Reading text costs about 100 ns a number.
package dataset
