package dataset

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// npyHeader holds the contents of the header of a NumPy array.
type npyHeader struct {
	cell    scalar
	fortran bool
	shape   []int
}

// maxNPYHeader is the largest header, in bytes.
const maxNPYHeader = 64 << 10

var (
	npyDescr   = regexp.MustCompile(`'descr':\s*'([<>|=]?)([a-zA-Z])(\d+)'`)
	npyFortran = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape   = regexp.MustCompile(`'shape':\s*\(([\d,\s]*)\)`)
)

// readNPYHeader reads "\x93NUMPY", the version, the length of the header and the header, a Python
// dictionary. The source is NEP 1, A Simple File Format for NumPy Arrays.
func readNPYHeader(r io.Reader) (npyHeader, error) {
	var h npyHeader
	var fixed [8]byte
	if _, err := io.ReadFull(r, fixed[:]); err != nil || !bytes.HasPrefix(fixed[:], []byte("\x93NUMPY")) {
		return h, fmt.Errorf("it does not start as a NumPy array")
	}
	length := make([]byte, 4)
	read := length[:2]
	if fixed[6] >= 2 {
		read = length
	}
	if _, err := io.ReadFull(r, read); err != nil {
		return h, fmt.Errorf("it ends in its header")
	}
	n := binary.LittleEndian.Uint32(length)
	if n > maxNPYHeader {
		return h, fmt.Errorf("its header has %d bytes, the limit is %d", n, maxNPYHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, fmt.Errorf("it ends in its header")
	}
	return h, h.parse(string(text))
}

func (h *npyHeader) parse(text string) error {
	descr := npyDescr.FindStringSubmatch(text)
	fortran := npyFortran.FindStringSubmatch(text)
	shape := npyShape.FindStringSubmatch(text)
	if descr == nil || fortran == nil || shape == nil {
		return fmt.Errorf("its header is %s; only plain arrays of numbers can be read", excerpt([]byte(text)))
	}
	size, _ := strconv.Atoi(descr[3])
	h.cell = scalar{kind: descr[2][0], size: size, big: descr[1] == ">"}
	switch descr[2] + descr[3] {
	case "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1":
	default:
		return fmt.Errorf("its type is %s%s; only f4, f8, i1 to i8, u1 to u8 and b1 can be read", descr[2], descr[3])
	}
	h.fortran = fortran[1] == "True"
	for part := range strings.SplitSeq(shape[1], ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		n, err := strconv.Atoi(part)
		if err != nil {
			return fmt.Errorf("its shape (%s) is too large", shape[1])
		}
		h.shape = append(h.shape, n)
	}
	if len(h.shape) == 0 {
		return fmt.Errorf("it is a single number, not an array")
	}
	return nil
}

// openNPY returns the rows of a NumPy array. Its first axis counts rows, and the others
// are flattened into one row in C order.
func openNPY(o *Options, file string, r *bufio.Reader) (rowReader, error) {
	h, err := readNPYHeader(r)
	if err != nil {
		return nil, &FileError{File: file, Reason: "it cannot be read as a NumPy array", Err: err}
	}
	width, ok := product(h.shape[1:])
	if _, fits := product(h.shape); !ok || !fits {
		return nil, &FileError{File: file, Reason: fmt.Sprintf("its shape %v is too large", h.shape)}
	}
	m, err := newMatrixReader(file, r, h.shape[0], width, h.cell)
	if err != nil {
		return nil, err
	}
	if !h.fortran || len(h.shape) == 1 || width == 1 {
		return m, nil
	}
	if len(h.shape) > 2 {
		return nil, &FileError{File: file, Reason: "it has more than two axes in Fortran order; save it in C order"}
	}
	return m.fromColumns(o.MaxMemory)
}

// fromColumns returns the reader of a matrix that is stored column by column. It holds the
// numbers twice in memory, which must not need more bytes than most, if that is not 0.
func (m *matrixReader) fromColumns(most int64) (rowReader, error) {
	want := m.rows * m.width * m.cell.size
	if most > 0 && int64(want) > most/2 {
		return nil, &FileError{File: m.file, Reason: fmt.Sprintf("it is in Fortran order, so its %d×%d numbers need more than the %d bytes of memory that a table may take (MaxMemory); save it in C order", m.rows, m.width, most)}
	}
	var file bytes.Buffer // grows with the data, not with the claim
	if got, err := io.Copy(&file, io.LimitReader(m.r, int64(want))); err != nil {
		return nil, m.broken(err)
	} else if got < int64(want) {
		return nil, &FileError{File: m.file, Reason: fmt.Sprintf("it has %d bytes of numbers where %d are announced", got, want)}
	}
	rows, size := make([]byte, 0, want), m.cell.size
	for i := range m.rows {
		for c := range m.width {
			rows = append(rows, file.Bytes()[(c*m.rows+i)*size:][:size]...)
		}
	}
	m.r = bufio.NewReader(bytes.NewReader(rows))
	return m, nil
}

// openNPZ returns the rows of the array of inputs in an archive, and those of the array of
// targets if there is one.
func openNPZ(in *input, o *Options, rep *Report) (x, y rowReader, err error) {
	at, size, err := in.randomAccess(o)
	if err != nil {
		return nil, nil, err
	}
	archive, err := zip.NewReader(at, size)
	if err != nil {
		return nil, nil, &FileError{File: in.path, Reason: "it is not an archive", Err: err}
	}
	files := map[string]*zip.File{}
	var names []string
	for _, f := range archive.File {
		switch {
		case strings.HasPrefix(f.Name, "xl/"):
			return nil, nil, &FileError{File: in.path, Reason: "it is an Excel workbook; save the sheet as CSV"}
		case f.Name == "mimetype":
			return nil, nil, &FileError{File: in.path, Reason: "it is an office document; save the sheet as CSV"}
		}
		if name, ok := strings.CutSuffix(f.Name, ".npy"); ok {
			files[name] = f
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil, nil, &FileError{File: in.path, Reason: "it is an archive without arrays; unpack it"}
	}
	inputs, targets, err := chooseArrays(o, names)
	if err != nil {
		return nil, nil, &FileError{File: in.path, Reason: "its arrays do not fit", Err: err}
	}
	note := fmt.Sprintf("the inputs are the array %q", inputs)
	if x, err = openMember(o, in.path, files[inputs]); err == nil && targets != "" {
		note += fmt.Sprintf(", the targets %q", targets)
		y, err = openMember(o, in.path, files[targets])
	}
	rep.Notes = append(rep.Notes, note)
	return x, y, err
}

func openMember(o *Options, path string, f *zip.File) (rowReader, error) {
	r, err := f.Open() // closed with the archive's file
	if err != nil {
		return nil, &FileError{File: path, Reason: fmt.Sprintf("the array %q cannot be read", f.Name), Err: err}
	}
	return openNPY(o, path+"/"+f.Name, bufio.NewReader(r))
}

// chooseArrays returns the names of the arrays of inputs and of targets. targets is ""
// if there is none.
func chooseArrays(o *Options, names []string) (inputs, targets string, err error) {
	if targets = o.TargetArray; targets == "" && !o.NoTarget && o.TargetPath == "" {
		targets = firstNamed(names, "y", "target", "targets", "label", "labels")
	}
	inputs = cmp.Or(o.Array, firstNamed(names, "x", "data", "features", "inputs"))
	if rest := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return n == targets }); inputs == "" && len(rest) == 1 {
		inputs = rest[0]
	} else if inputs == "" {
		return "", "", fmt.Errorf("the arrays are %s; name one in Array", quoted(names, 8, ", "))
	}
	for _, n := range []string{inputs, targets} {
		if n != "" && !slices.Contains(names, n) {
			return "", "", &UnknownColumnError{What: "array", Name: n, Near: near(n, names), Have: names}
		}
	}
	return inputs, targets, nil
}

func firstNamed(names []string, wanted ...string) string {
	for _, w := range wanted {
		if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, w) }); i >= 0 {
			return names[i]
		}
	}
	return ""
}
