package learners_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/bkbtuner/bkb/gp/kernel"
	"github.com/bkbtuner/bkb/gp/kernel/kerneltest"
	"github.com/bkbtuner/bkb/learners"
	"github.com/bkbtuner/bkb/learners/data"
	"github.com/bkbtuner/bkb/learners/dataset"
	"github.com/bkbtuner/bkb/sketch"
)

func write(tb testing.TB, f *learners.File) []byte {
	tb.Helper()
	var buf bytes.Buffer
	if err := f.Write(&buf); err != nil {
		tb.Fatal(err)
	}
	return buf.Bytes()
}

func read(b []byte) (*learners.File, error) { return learners.Read(bytes.NewReader(b), nil) }

// TestSaveAndLoad checks that predictions are equal to the bit, and that links and the
// other fields are kept.
func TestSaveAndLoad(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 1))
	least := 0.25
	for name, c := range models(t, rng) {
		f := &learners.File{
			Algorithm: "falkon", Params: json.RawMessage(`{"lambda":1e-300,"step":[1,2]}`), Seed: math.MaxUint64,
			Report: &learners.Report{Rows: 7, Best: 3, Measure: "rmse", ValidationError: &least, Notes: []string{"a"}},
			Model:  c.m,
		}
		path := filepath.Join(t.TempDir(), "m.bkb")
		for range 2 { // the second replaces the first
			if err := f.Save(path); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		g, err := learners.Load(path, nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		x := kernel.FromRows(c.x)
		same(t, name, predict(t, g.Model, x), predict(t, c.m, x))
		if learners.LinkOf(g.Model) != learners.LinkOf(c.m) {
			t.Errorf("%s: link %q, want %q", name, learners.LinkOf(g.Model), learners.LinkOf(c.m))
		}
		if g.Algorithm != f.Algorithm || string(g.Params) != string(f.Params) || g.Seed != f.Seed || !cmp.Equal(g.Report, f.Report) {
			t.Errorf("%s: %+v, want %+v", name, g, f)
		}
		if again := write(t, g); !bytes.Equal(again, write(t, f)) {
			t.Errorf("%s: written again it is another file", name)
		}
		if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
			t.Errorf("%s: the folder has %v, %v", name, left, err)
		}
	}
}

// TestRawData predicts from a table in other units and another order of columns.
func TestRawData(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	train, other := filepath.Join(dir, "a.csv"), filepath.Join(dir, "b.csv")
	for path, text := range map[string]string{
		train: "u,city,y\n1,Oslo,10\n2,Rome,30\n4,Oslo,20\n9,Rome,60\n",
		other: "city,u\nRome,9\nOslo,1\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	table, err := dataset.Open(ctx, dataset.Options{Target: []string{"y"}}, train)
	if err != nil {
		t.Fatal(err)
	}
	defer table.Close()
	e, err := table.FitEncoding(ctx, nil, data.EncodingOptions{})
	if err != nil {
		t.Fatal(err)
	}
	src, err := table.Encode(ctx, e)
	if err != nil {
		t.Fatal(err)
	}
	m, err := learners.NewLinear(nil, src.Dim(), []float64{1, 2, 3}, 1)
	if err != nil {
		t.Fatal(err)
	}
	f, err := read(write(t, &learners.File{Encoding: e, Model: m}))
	if err != nil {
		t.Fatal(err)
	}
	want := predict(t, m, src)
	e.Decode(want)
	second, err := dataset.Open(ctx, dataset.Options{NoTarget: true}, other)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	x, err := second.Encode(ctx, f.Encoding)
	if err != nil {
		t.Fatal(err)
	}
	got := predict(t, f.Model, x)
	f.Encoding.Decode(got)
	same(t, "decoded", got, []float64{want[3], want[0]})

	wrong, err := learners.NewLinear(nil, 2, []float64{1, 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var format *learners.FormatError
	if err := (&learners.File{Encoding: e, Model: wrong}).Write(io.Discard); !errors.As(err, &format) {
		t.Errorf("an encoding of 3 inputs with a model of 2: %v", err)
	}
}

// TestDamage flips, cuts and appends bytes everywhere.
func TestDamage(t *testing.T) {
	m, err := learners.NewExpansion(kerneltest.Gaussian(1), kernel.NewPoints(2, 2, []float64{1, 2, 3, 4}), []float64{5, 6}, 1)
	if err != nil {
		t.Fatal(err)
	}
	whole := write(t, &learners.File{Algorithm: "krr", Model: m})
	var format *learners.FormatError
	var version *learners.VersionError
	for i := range whole {
		damaged := bytes.Clone(whole)
		damaged[i] ^= 0x40
		if _, err := read(damaged); !errors.As(err, &format) && !errors.As(err, &version) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
		_, err := read(whole[:i])
		if !errors.As(err, &format) || !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d bytes: %v", i, err)
		}
	}
	if _, err := read(append(bytes.Clone(whole), 0)); !errors.As(err, &format) {
		t.Errorf("a byte too many: %v", err)
	}
	if _, err := read([]byte("PK\x03\x04 something else altogether")); !errors.As(err, &format) {
		t.Errorf("another file: %v", err)
	}
	newer := bytes.Clone(whole)
	newer[8] = 3
	if _, err := read(newer); !errors.As(err, &version) || version.Got != 3 {
		t.Errorf("version 3: %v", err)
	}
	path := filepath.Join(t.TempDir(), "model")
	if err := os.WriteFile(path, whole[:40], 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := learners.Load(path, nil); !errors.As(err, &format) || !strings.Contains(err.Error(), path) {
		t.Errorf("Load: %v", err)
	}
	if _, err := learners.Load(path+"no", nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Load of nothing: %v", err)
	}
}

// forge returns a file with the given header and rest, its checksum right.
func forge(header string, rest ...byte) []byte {
	b := append([]byte("BKBMODEL"), 1, 0, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(header)))
	b = append(b, header...)
	b = binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
	return append(b, rest...)
}

var hostile = []string{
	``, `null`, `[]`, `{}`, `{"kind":"expansion"}`, `{"kind":"linear"}`, `{"kind":"other"}`,
	`{"kind":"linear","dim":1,"outputs":1,"arrays":[{"name":"weights","type":"float64","count":1000000000000}]}`,
	`{"kind":"linear","dim":1,"outputs":1,"arrays":[{"name":"weights","type":"float64","count":9223372036854775807}]}`,
	`{"kind":"linear","dim":1,"outputs":1,"arrays":[{"name":"weights","type":"float64","count":-1}]}`,
	`{"kind":"linear","dim":1,"outputs":1,"arrays":[{"name":"weights","type":"complex128","count":0}]}`,
	`{"kind":"linear","dim":1000000000000,"outputs":1000000000000,"arrays":[{"name":"weights","type":"float64","count":0}]}`,
	`{"kind":"linear","dim":0,"outputs":0,"arrays":[{"name":"weights","type":"float64","count":0}]}`,
	`{"kind":"linear","dim":1000000000000,"outputs":1,"features":{"family":"fourier","kernel":{"name":"gaussian","length_scales":[1]},"dim":1000000000000,"features":0},"arrays":[{"name":"weights","type":"float64","count":0}]}`,
	`{"kind":"linear","dim":3,"outputs":1,"features":{"family":"fourier","kernel":{"name":"gaussian"},"dim":3,"features":0},"arrays":[{"name":"weights","type":"float64","count":0}]}`,
	`{"kind":"expansion","dim":1000000000,"outputs":1,"rows":1000000000,"kernel":{"name":"gaussian","length_scales":[1]},"centers":"dense","arrays":[{"name":"centers","type":"float64","count":0},{"name":"coefficients","type":"float64","count":0}]}`,
	`{"kind":"expansion","dim":0,"outputs":1,"rows":3,"kernel":{"name":"gaussian","length_scales":[1]},"centers":"dense","arrays":[{"name":"centers","type":"float64","count":0},{"name":"coefficients","type":"float64","count":0}]}`,
	`{"kind":"expansion","dim":4,"outputs":1,"rows":4611686018427387904,"kernel":{"name":"gaussian","length_scales":[1]},"centers":"dense","arrays":[{"name":"centers","type":"float64","count":0},{"name":"coefficients","type":"float64","count":0}]}`,
	`{"kind":"expansion","dim":1,"outputs":1,"rows":1,"kernel":{"name":"gaussian","length_scales":[1]},"centers":"sparse","arrays":[{"name":"ptr","type":"int64","count":0},{"name":"columns","type":"int32","count":0},{"name":"centers","type":"float32","count":0},{"name":"coefficients","type":"float64","count":0}]}`,
	`{"kind":"expansion","dim":1,"outputs":1,"rows":1,"kernel":{"name":"nonsense"},"centers":"dense","arrays":[]}`,
	`{"kind":"expansion","dim":1,"outputs":1,"rows":1,"link":"other","arrays":[]}`,
	`{"arrays":[{},{},{},{},{},{},{},{},{}]}`,
	`{"kind":"average"}`, `{"kind":"average","weights":[1],"members":[{}]}`,
	`{"kind":"average","dim":1,"outputs":1,"weights":[1],"members":[{"kind":"average"}]}`,
	`{"kind":"average","dim":1,"outputs":1,"weights":[1],"members":[{"kind":"linear","dim":1,"outputs":1,"arrays":[{"name":"weights","type":"float64","count":1000000000000}]}]}`,
	`{"kind":"average","dim":1,"outputs":1,"weights":[],"members":[{"kind":"linear","link":"calibrated","dim":0,"outputs":1,"arrays":[{"name":"weights","type":"float64","count":0}]}]}`,
	`{"kind":"average","members":[` + strings.Repeat("{},", 64) + `{}]}`,
	`{"kind":"linear","encoding":{"version":99}}`,
}

// TestHostileHeaders checks that a header with a correct checksum and false claims is
// refused without taking memory for them.
func TestHostileHeaders(t *testing.T) {
	for _, header := range hostile {
		for _, rest := range [][]byte{nil, make([]byte, 16)} {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			f, err := read(forge(header, rest...))
			runtime.ReadMemStats(&after)
			if err == nil {
				t.Errorf("%s: read as %+v", header, f)
			}
			if took := after.TotalAlloc - before.TotalAlloc; took > 16<<20 {
				t.Errorf("%s: took %d bytes", header, took)
			}
		}
	}
}

// TestSaveMemory saves weights of several pieces without a copy of them.
func TestSaveMemory(t *testing.T) {
	w := make([]float64, 1<<20+5)
	for i := range w {
		w[i] = float64(i)
	}
	m, err := learners.NewLinear(nil, len(w), w, 1)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "m.bkb")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := (&learners.File{Algorithm: "krr", Model: m}).Save(path); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 4<<20 {
		t.Errorf("%d bytes were allocated to save %d", took, 8*len(w))
	}
	f, err := learners.Load(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, ok := f.Model.(*learners.Linear); !ok || !slices.Equal(got.Weights(), w) {
		t.Error("the weights are others")
	}
}

// TestUnsavable checks that models which cannot be saved are refused.
func TestUnsavable(t *testing.T) {
	k := &kernel.Pairwise[string]{Name: "length", Func: func(a, b string) float64 { return float64(len(a) * len(b)) }}
	m, err := learners.NewExpansion(k, kernel.List[string]{"a"}, []float64{1}, 1)
	if err != nil {
		t.Fatal(err)
	}
	var unsavable *learners.UnsavableError
	for _, f := range []*learners.File{{Model: m}, {}, {Model: custom{}}} {
		if err := f.Write(io.Discard); !errors.As(err, &unsavable) {
			t.Errorf("%T: %v", f.Model, err)
		}
		dir := t.TempDir()
		if err := f.Save(filepath.Join(dir, "m")); !errors.As(err, &unsavable) {
			t.Errorf("%T: %v", f.Model, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

type custom struct{ learners.Model }

// TestSaveKeeps checks that a failed Save keeps the old file.
func TestSaveKeeps(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m")
	if err := os.WriteFile(path, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := (&learners.File{Model: custom{}}).Save(path); err == nil {
		t.Fatal("saved")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "old" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestResolve checks that kernels of the caller are saved by name.
func TestResolve(t *testing.T) {
	own := owned{kerneltest.Gaussian(2)}
	m, err := learners.NewExpansion(own, kernel.NewPoints(1, 2, []float64{1, 2}), []float64{3}, 1)
	if err != nil {
		t.Fatal(err)
	}
	b := write(t, &learners.File{Model: m})
	if _, err := read(b); err == nil {
		t.Error("a kernel that nobody knows was resolved")
	}
	f, err := learners.Read(bytes.NewReader(b), func(s kernel.Spec) (kernel.Kernel, error) {
		if s.Name != "own" {
			return nil, errors.New("another kernel")
		}
		return own, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	x := kernel.FromRows(kernel.NewPoints(2, 2, []float64{1, 1, 2, 2}))
	same(t, "own", predict(t, f.Model, x), predict(t, m, x))
}

type owned struct{ kernel.Kernel }

func (owned) Spec() kernel.Spec { return kernel.Spec{Name: "own"} }

func FuzzRead(f *testing.F) {
	rng := rand.New(rand.NewPCG(7, 1))
	for _, c := range models(f, rng) {
		f.Add(write(f, &learners.File{Model: c.m, Algorithm: "x"}))
	}
	for _, header := range hostile {
		f.Add(forge(header))
	}
	spec := &sketch.FeatureSpec{Family: sketch.ReLU, Kernel: kernel.Spec{Name: "arc_cosine", LengthScales: []float64{1}}, Dim: 2, Features: 2}
	m, err := learners.NewLinear(spec, 2, []float64{1, 2}, 1)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(write(f, &learners.File{Model: m}))
	f.Fuzz(func(t *testing.T, b []byte) {
		// Without correct checksums no mutation would be read any further.
		file, err := read(mend(b))
		if err != nil {
			return
		}
		again := write(t, file)
		second, err := read(again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if third := write(t, second); !bytes.Equal(third, again) {
			t.Fatal("written again it is another file")
		}
	})
}

// mend returns b with a correct checksum of its header.
func mend(b []byte) []byte {
	if len(b) < 20 {
		return b
	}
	n := 16 + uint64(binary.LittleEndian.Uint32(b[12:]))
	if n+4 > uint64(len(b)) {
		return b
	}
	out := bytes.Clone(b)
	binary.LittleEndian.PutUint32(out[n:], crc32.Checksum(out[:n], crc32.MakeTable(crc32.Castagnoli)))
	return out
}

// A socket or a device is not replaced.
func TestSaveReplacesRegularFilesOnly(t *testing.T) {
	dir, err := os.MkdirTemp("", "s") // a short path, as sockets have
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	m, err := learners.NewLinear(nil, 1, []float64{2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := (&learners.File{Model: m}).Save(path); err == nil {
		t.Error("it was saved")
	}
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSocket == 0 {
		t.Errorf("%v, %v", info, err)
	}
}

// A calibrated model without a slope and an offset for each output is refused.
func TestDamagedCalibration(t *testing.T) {
	m, err := learners.Calibrate(t.Context(), identity(t, 1), identity(t, 1), scores(t, 100, []float64{2}, []float64{-1}, 4), nil)
	if err != nil {
		t.Fatal(err)
	}
	whole := write(t, &learners.File{Model: m})
	end := 16 + int(binary.LittleEndian.Uint32(whole[12:]))
	header, rest := string(whole[16:end]), whole[end+4:]
	if _, err := read(forge(header, rest...)); err != nil {
		t.Fatalf("the same header: %v", err)
	}
	at := strings.Index(header, `"calibration":`)
	stop := at + strings.Index(header[at:], "}") + 1
	for _, text := range []string{`"calibration":{"slope":[1,2],"offset":[1]}`, `"calibration":{"slope":[1]}`, `"calibration":null`} {
		var format *learners.FormatError
		if _, err := read(forge(header[:at]+text+header[stop:], rest...)); !errors.As(err, &format) || !strings.Contains(err.Error(), "slopes and offsets") {
			t.Errorf("%s: %v", text, err)
		}
	}
}
