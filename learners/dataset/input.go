package dataset

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// input is an open file, decompressed.
type input struct {
	path       string
	r          *bufio.Reader
	compressed bool
	file       *os.File  // nil for standard input
	end        io.Closer // of the file or of standard input
}

// headBytes is the size of the start of a file that detects formats and headers.
const headBytes = 64 << 10

func openFile(ctx context.Context, path string) (*input, error) {
	in := &input{path: path}
	var raw io.Reader
	if path == "-" {
		stdin := newInterruptible(ctx, os.Stdin)
		raw, in.end = stdin, stdin
	} else {
		if scheme, _, ok := strings.Cut(path, "://"); ok {
			return nil, &FileError{File: path, Reason: fmt.Sprintf("files are read from disks alone; download the %s address, or pipe it into -", scheme)}
		}
		f, err := os.Open(path)
		if err != nil {
			return nil, &FileError{File: path, Reason: "it cannot be opened", Err: errors.Unwrap(err)}
		}
		if info, err := f.Stat(); err == nil && info.IsDir() {
			f.Close()
			return nil, &FileError{File: path, Reason: "it is a directory"}
		}
		raw, in.file, in.end = f, f, f
	}
	if err := in.decompress(raw); err != nil {
		in.close()
		return nil, err
	}
	return in, nil
}

func (in *input) decompress(raw io.Reader) error {
	in.r = bufio.NewReaderSize(raw, headBytes)
	if magic, _ := in.r.Peek(2); !bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		return nil
	}
	gz, err := gzip.NewReader(in.r)
	if err != nil {
		return &FileError{File: in.path, Reason: "it cannot be decompressed", Err: err}
	}
	in.compressed = true
	in.r = bufio.NewReaderSize(gz, headBytes)
	return nil
}

func (in *input) head() []byte { return headOf(in.r) }

func (in *input) close() {
	if in.end != nil {
		in.end.Close()
	}
}

// newInterruptible returns a reader of r that ends with ctx, even while a terminal or a pipe
// blocks. A blocked Read of r then continues in its own goroutine, and its result is lost.
func newInterruptible(ctx context.Context, r io.Reader) *io.PipeReader {
	out, in := io.Pipe()
	context.AfterFunc(ctx, func() { in.CloseWithError(ctx.Err()) })
	go func() {
		_, err := io.Copy(in, r)
		in.CloseWithError(err)
	}()
	return out
}

// randomAccess returns the contents for formats that are read out of order. It is the
// file itself, or a copy in memory if the file is compressed or a pipe.
func (in *input) randomAccess(o *Options) (io.ReaderAt, int64, error) {
	if in.file != nil && !in.compressed {
		if info, err := in.file.Stat(); err == nil && info.Mode().IsRegular() {
			return in.file, info.Size(), nil
		}
	}
	most := int64(MaxArchive)
	if o.MaxMemory > 0 {
		most = min(most, o.MaxMemory)
	}
	data, err := io.ReadAll(io.LimitReader(in.r, most+1))
	if err != nil {
		return nil, 0, &FileError{File: in.path, Reason: "it cannot be read", Err: err}
	}
	if int64(len(data)) > most {
		return nil, 0, &FileError{File: in.path, Reason: fmt.Sprintf("it is larger than %d bytes; decompress it to a file", most)}
	}
	return bytes.NewReader(data), int64(len(data)), nil
}

// reader returns the rowReader of an open file, and that of its targets if it has them apart.
func (in *input) reader(o *Options, rep *Report) (r, targets rowReader, err error) {
	switch o.Format {
	case NPY:
		r, err = openNPY(o, in.path, in.r)
	case NPZ:
		return openNPZ(in, o, rep)
	case IDX:
		r, err = openIDX(in.path, in.r)
	case Parquet:
		r, err = openParquet(in, o)
	case JSON:
		r, err = openJSON(in.path, in.r)
	default:
		r, err = openCSV(in.path, in.r, o, rep)
	}
	return r, nil, err
}
