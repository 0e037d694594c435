package learners

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/sketch"
)

// File is a model with all that is needed to use it later on raw data.
type File struct {
	// Algorithm names the algorithm, and Params holds its hyper-parameters as a JSON
	// value. Both may be empty.
	Algorithm string
	Params    json.RawMessage
	Seed      uint64
	// Encoding turns a table into inputs, and outputs into the units of the targets. If
	// it is nil, inputs are used as they are.
	Encoding *data.Encoding
	// Report describes the fit, or is nil.
	Report *Report
	// Model is an *Expansion, a *Linear, a *Calibrated of one of them, or an *Average of
	// some of them.
	Model Model
}

// Report describes how a fit went.
type Report struct {
	Rows           int     `json:"rows"` // n
	ValidationRows int     `json:"validation_rows,omitempty"`
	Iterations     int     `json:"iterations,omitempty"` // made
	Best           int     `json:"best,omitempty"`       // the iteration that became the model
	Seconds        float64 `json:"seconds,omitempty"`    // of the fit
	// Measure names the measure of ValidationError, which is nil if there is none.
	Measure         string   `json:"measure,omitempty"`
	ValidationError *float64 `json:"validation_error,omitempty"`
	// Interrupted says that the fit was stopped before its end.
	Interrupted bool     `json:"interrupted,omitempty"`
	Notes       []string `json:"notes,omitempty"`
}

// fileHeader is the JSON header of a model file.
type fileHeader struct {
	Kind      string              `json:"kind"` // expansion, linear, average
	Dim       int                 `json:"dim"`
	Outputs   int                 `json:"outputs"`
	Link      Link                `json:"link,omitempty"`
	Platt     *calibration        `json:"calibration,omitempty"`
	Kernel    *kernel.Spec        `json:"kernel,omitempty"`
	Centers   string              `json:"centers,omitempty"` // dense, sparse
	Rows      int                 `json:"rows,omitempty"`    // M of the centres
	Features  *sketch.FeatureSpec `json:"features,omitempty"`
	Arrays    []array             `json:"arrays"`
	Members   []fileHeader        `json:"members,omitempty"` // of an average, each with its shape and arrays
	Weights   []float64           `json:"weights,omitempty"`
	Algorithm string              `json:"algorithm,omitempty"`
	Params    json.RawMessage     `json:"params,omitempty"`
	Seed      uint64              `json:"seed,omitempty"`
	Report    *Report             `json:"report,omitempty"`
	Encoding  *data.Encoding      `json:"encoding,omitempty"`
}

// UnsavableError reports a model that cannot be saved. Its type belongs to the caller,
// or its centres are neither dense nor sparse rows of numbers.
type UnsavableError struct{ What string }

func (e *UnsavableError) Error() string { return "learners: " + e.What + " cannot be saved" }

// Write writes the file. It returns an *UnsavableError, or the errors of w.
func (f *File) Write(w io.Writer) error {
	h := fileHeader{Algorithm: f.Algorithm, Params: f.Params, Seed: f.Seed, Encoding: f.Encoding, Report: f.Report}
	if err := f.check(); err != nil {
		return err
	}
	model := f.Model
	outer, isCalibrated := model.(*Calibrated)
	if isCalibrated {
		model = outer.base
	}
	if err := h.model(model); err != nil {
		return err
	}
	if isCalibrated {
		h.Link, h.Platt = calibrated, &outer.scaling
	}
	header, err := json.Marshal(h)
	if err != nil {
		return err
	}
	arrays, err := h.sections()
	if err != nil {
		return err
	}
	return writeContainer(w, header, arrays)
}

// model describes a model that is not a *Calibrated.
func (h *fileHeader) model(m Model) error {
	switch m := m.(type) {
	case *Expansion:
		return h.expansion(m)
	case *Linear:
		h.linear(m)
	case *Average:
		h.Kind, h.Dim, h.Outputs, h.Weights = average, m.Dim(), m.Outputs(), m.weights
		h.Members = make([]fileHeader, len(m.members))
		for i, member := range m.members {
			if err := h.Members[i].model(member); err != nil {
				return err
			}
			if h.Members[i].Kind == average {
				return &UnsavableError{"an average of averages"}
			}
		}
	default:
		return &UnsavableError{fmt.Sprintf("a model of type %T", m)}
	}
	return nil
}

// average is the kind of an [Average].
const average = "average"

// sections returns the arrays in the order of the file, which is that of the members in an
// average.
func (h *fileHeader) sections() ([]*array, error) {
	parts := h.Members
	if h.Kind != average {
		parts = []fileHeader{*h}
	}
	if len(parts) > mostMembers {
		return nil, &FormatError{Reason: fmt.Sprintf("%d members, at most %d are possible", len(parts), mostMembers)}
	}
	var out []*array
	for _, p := range parts {
		if len(p.Arrays) > maxArrays {
			return nil, &FormatError{Reason: fmt.Sprintf("%d arrays, at most %d are possible", len(p.Arrays), maxArrays)}
		}
		for i := range p.Arrays {
			out = append(out, &p.Arrays[i])
		}
	}
	return out, nil
}

// check verifies that the encoding fits the model.
func (f *File) check() error {
	e, m := f.Encoding, f.Model
	if e == nil || m == nil {
		return nil
	}
	if e.Dim() != m.Dim() || e.Outputs() != m.Outputs() && e.Task != data.Unlabelled {
		return &FormatError{Reason: fmt.Sprintf("the encoding makes %d inputs and %d outputs, the model has %d and %d", e.Dim(), e.Outputs(), m.Dim(), m.Outputs())}
	}
	return nil
}

func (h *fileHeader) expansion(e *Expansion) error {
	spec := e.kernel.Spec()
	h.Kind, h.Dim, h.Outputs, h.Link, h.Kernel, h.Rows = "expansion", e.Dim(), e.c, e.link, &spec, e.centers.Len()
	switch x := e.centers.(type) {
	case *kernel.Points[float64]:
		h.Centers, h.Arrays = "dense", []array{newArray("centers", x.Data()[:x.Len()*x.Dim()])}
	case *kernel.Points[float32]:
		h.Centers, h.Arrays = "dense", []array{newArray("centers", x.Data()[:x.Len()*x.Dim()])}
	case *kernel.CSR[float64]:
		h.Centers, h.Arrays = "sparse", sparseArrays(x)
	case *kernel.CSR[float32]:
		h.Centers, h.Arrays = "sparse", sparseArrays(x)
	default:
		return &UnsavableError{fmt.Sprintf("an expansion in rows of type %T", x)}
	}
	h.Arrays = append(h.Arrays, newArray("coefficients", e.coef))
	if e.mapping != nil {
		h.Arrays = append(h.Arrays, newArray("map", e.mapping))
	}
	return nil
}

func (h *fileHeader) linear(l *Linear) {
	h.Kind, h.Dim, h.Outputs, h.Link = "linear", l.d, l.c, l.link
	h.Features = l.spec
	h.Arrays = []array{newArray("weights", l.w)}
}

func sparseArrays[T kernel.Float](x *kernel.CSR[T]) []array {
	ptr := []int64{0}
	var cols []int32
	var vals []T
	for i := range x.Len() {
		col, val := x.Row(i)
		cols, vals = append(cols, col...), append(vals, val...)
		ptr = append(ptr, int64(len(cols)))
	}
	return []array{newArray("ptr", ptr), newArray("columns", cols), newArray("centers", vals)}
}

// Read reads a file. resolve builds kernels that are not built in and may be nil. It returns a
// *FormatError, a *VersionError, or the errors of kernel.New and sketch.NewFeatures.
//
// Memory is a small multiple of the length of the file and does not depend on what its header
// claims. A feature map is made at the first prediction, when inputs have confirmed d.
func Read(r io.Reader, resolve kernel.Resolver) (*File, error) {
	text, err := readHeader(r)
	if err != nil {
		return nil, err
	}
	var h fileHeader
	if err := json.Unmarshal(text, &h); err != nil {
		return nil, &FormatError{Reason: "its header", Err: err}
	}
	arrays, err := h.sections()
	if err != nil {
		return nil, err
	}
	if err := readArrays(r, arrays); err != nil {
		return nil, err
	}
	f := &File{Algorithm: h.Algorithm, Params: h.Params, Seed: h.Seed, Encoding: h.Encoding, Report: h.Report}
	isCalibrated := h.Link == calibrated
	if isCalibrated {
		h.Link = Expected
	}
	f.Model, err = h.readModel(resolve)
	if err == nil && isCalibrated {
		f.Model, err = h.Platt.apply(f.Model)
	}
	if err != nil {
		return nil, err
	}
	return f, f.check()
}

// readModel returns the model whose arrays have been read.
func (h *fileHeader) readModel(resolve kernel.Resolver) (Model, error) {
	switch {
	case !h.Link.valid():
		return nil, &FormatError{Reason: fmt.Sprintf("the unknown link %q", h.Link)}
	case h.Kind == "expansion":
		return h.readExpansion(resolve)
	case h.Kind == "linear":
		return h.readLinear()
	case h.Kind == average:
		return h.readAverage(resolve)
	}
	return nil, &FormatError{Reason: fmt.Sprintf("a model of the unknown kind %q", h.Kind)}
}

func (h *fileHeader) readAverage(resolve kernel.Resolver) (Model, error) {
	members := make([]Model, len(h.Members))
	for i := range h.Members {
		m := &h.Members[i]
		if m.Kind == average {
			return nil, &FormatError{Reason: "an average of averages"}
		}
		var err error
		if members[i], err = m.readModel(resolve); err != nil {
			return nil, err
		}
	}
	a, err := NewAverage(members, h.Weights)
	if err != nil {
		return nil, &FormatError{Reason: "the average", Err: err}
	}
	return a, nil
}

func (h *fileHeader) readExpansion(resolve kernel.Resolver) (Model, error) {
	if h.Kernel == nil {
		return nil, &FormatError{Reason: "an expansion without a kernel"}
	}
	k, err := kernel.New(*h.Kernel, resolve)
	if err != nil {
		return nil, err
	}
	if h.Rows < 1 || h.Dim < 0 || h.Outputs < 1 {
		return nil, &FormatError{Reason: fmt.Sprintf("%d centres of %d coordinates with %d outputs", h.Rows, h.Dim, h.Outputs)}
	}
	centers, err := h.readCenters()
	if err != nil {
		return nil, err
	}
	coef, err := arrayOf[float64](h, "coefficients")
	if err != nil {
		return nil, err
	}
	e, err := NewExpansion(k, centers, coef, h.Outputs)
	if err != nil {
		return nil, &FormatError{Reason: "the expansion", Err: err}
	}
	if slices.ContainsFunc(h.Arrays, func(a array) bool { return a.Name == "map" }) {
		l, err := arrayOf[float64](h, "map")
		if err == nil && len(l) != h.Dim*h.Dim {
			err = &FormatError{Reason: fmt.Sprintf("a map of %d numbers for %d coordinates", len(l), h.Dim)}
		}
		if err == nil {
			err = checkFinite("map", l, h.Dim)
		}
		if err != nil {
			return nil, &FormatError{Reason: "the map of inputs", Err: err}
		}
		e = e.WithMap(l)
	}
	return e.WithLink(h.Link), nil
}

func (h *fileHeader) readCenters() (kernel.Rows, error) {
	single := false
	for _, a := range h.Arrays {
		single = single || a.Name == "centers" && a.Type == "float32"
	}
	switch {
	case h.Centers == "dense" && single:
		return readDense[float32](h)
	case h.Centers == "dense":
		return readDense[float64](h)
	case h.Centers == "sparse" && single:
		return readSparse[float32](h)
	case h.Centers == "sparse":
		return readSparse[float64](h)
	}
	return nil, &FormatError{Reason: fmt.Sprintf("centres of the unknown kind %q", h.Centers)}
}

func readDense[T kernel.Float](h *fileHeader) (kernel.Rows, error) {
	x, err := arrayOf[T](h, "centers")
	if err != nil {
		return nil, err
	}
	if h.Dim < 1 || len(x)%h.Dim != 0 || len(x)/h.Dim != h.Rows {
		return nil, &FormatError{Reason: fmt.Sprintf("%d numbers for %d centres of %d coordinates", len(x), h.Rows, h.Dim)}
	}
	return kernel.NewPoints(h.Rows, h.Dim, x), nil
}

func readSparse[T kernel.Float](h *fileHeader) (kernel.Rows, error) {
	long, err := arrayOf[int64](h, "ptr")
	if err != nil {
		return nil, err
	}
	ptr := make([]int, len(long))
	for i, p := range long {
		ptr[i] = int(p)
	}
	cols, err := arrayOf[int32](h, "columns")
	if err != nil {
		return nil, err
	}
	vals, err := arrayOf[T](h, "centers")
	if err != nil {
		return nil, err
	}
	x, err := kernel.NewCSR(h.Rows, h.Dim, ptr, cols, vals)
	if err != nil {
		return nil, &FormatError{Reason: "the sparse centres", Err: err}
	}
	return x, nil
}

func (h *fileHeader) readLinear() (Model, error) {
	w, err := arrayOf[float64](h, "weights")
	if err != nil {
		return nil, err
	}
	if s := h.Features; s != nil && (s.Dim != h.Dim || s.Features < 1 || h.Outputs < 1 || len(w)/h.Outputs != s.Features) {
		return nil, &FormatError{Reason: fmt.Sprintf("%d weights for %d features of %d coordinates", len(w), s.Features, s.Dim)}
	}
	l, err := NewLinear(h.Features, h.Dim, w, h.Outputs)
	if err != nil {
		return nil, &FormatError{Reason: "the linear model", Err: err}
	}
	return l.WithLink(h.Link), nil
}

// arrayOf returns the data of an array.
func arrayOf[T element](h *fileHeader, name string) ([]T, error) {
	for _, a := range h.Arrays {
		if a.Name != name {
			continue
		}
		data, ok := a.data.([]T)
		if !ok {
			return nil, &FormatError{Reason: fmt.Sprintf("array %q is of %s, want %T", name, a.Type, *new(T))}
		}
		return data, nil
	}
	return nil, &FormatError{Reason: fmt.Sprintf("array %q is missing", name)}
}

// Save writes the file beside path and then renames it, so that path is replaced whole or not at
// all. A path that is not a regular file, such as a device or a directory, is not replaced.
func (f *File) Save(path string) error {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("learners: %s is not a regular file; save the model to another path", path)
	}
	return atomicfile.Write(path, 0o644, f.Write)
}

// Load reads the file at path as Read does. Errors name the file.
func Load(path string, resolve kernel.Resolver) (*File, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	f, err := Read(bufio.NewReaderSize(in, chunk), resolve)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}
