// Package dataset reads files into tables, and cleans and encodes them for learners.
//
//	files ──Open──► Table ──FitEncoding(training rows)──► data.Encoding, kept in the model
//	                  │                                       │
//	                  └───────────────Encode──────────────────┴──► data.Source ──data.Subset──► parts
//
// [Open] reads CSV and similar text, JSON, libsvm, .npy, .npz, Parquet and IDX files, with or
// without gzip. It reads each file once from start to end. The [Report] lists every guess
// (format, delimiter, header, target, kinds of columns) with its reason, and [Options] can
// override each. A [Table] holds numbers, with NaN for missing cells, and codes of categories.
//
// A number is decimal, with a sign, digits, a point and an exponent. Infinities, 0x10 and 1_000
// are refused. A column holds either numbers or texts, or the error names the exceptional cell.
//
// A [data.Encoding] turns a table into inputs X, n×d, and targets Y, n×c. It is fitted to
// training rows only, and checks the columns of all data that it is applied to later. The
// source of a table is in memory ([data.Memory]), or it is read from a chunk file and encoded
// at every pass, so that memory does not limit n. Both give the same numbers to the bit at
// equal precision. libsvm rows stay sparse from the file to the kernel.
//
// Errors are a [data.CellError] with row, line and column, a [FileError], an
// [UnknownColumnError] or a [ColumnsError]. Constant columns are dropped as inputs with a note,
// and duplicate rows are kept and counted. Readers take memory for the contents of a file, and
// for at most MaxColumns columns if it claims so, except that a library reads Parquet, and it
// trusts the headers of pages.
//
// Memory is 8 bytes a cell for the table, and 8, or 4 with Float32, for the encoded inputs. A
// chunk file takes about 3 MiB however long it is, plus the levels of categories. Reading text
// costs about 100 ns a number.
package dataset
