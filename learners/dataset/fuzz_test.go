package dataset

import (
	"bytes"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"

	"github.com/bkbtuner/bkb/internal/racetest"
	"github.com/bkbtuner/bkb/learners/data"
)

// writeIn writes text to a file of dir and uses the same file every time.
func writeIn(t testing.TB, dir, text string) string {
	t.Helper()
	path := filepath.Join(dir, "data")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// survive reads data in a format. Reading must neither panic nor need much memory. A
// resulting table must hold what it says, and be encodable or refused.
func survive(t *testing.T, format Format, path string) {
	table, err := Open(background, Options{Format: format}, path)
	if err != nil {
		if !strings.HasPrefix(err.Error(), "dataset: ") {
			t.Errorf("an error without its package: %v", err)
		}
		return
	}
	defer table.Close()
	_ = table.Report().String()
	rows := 0
	err = table.scan(background, nil, func(int, []float64) error { rows++; return nil })
	if err != nil && format == Chunks {
		return // damage is found while reading
	}
	if err != nil || rows != table.Len() {
		t.Fatalf("%d rows of %d, %v", rows, table.Len(), err)
	}
	e, err := table.FitEncoding(background, nil, data.EncodingOptions{Missing: data.FillMostFrequent})
	if err != nil {
		return
	}
	if src, err := table.Encode(background, e); err == nil && src.Dim() != e.Dim() {
		t.Errorf("%d inputs, announced %d", src.Dim(), e.Dim())
	}
}

func FuzzCSV(f *testing.F) {
	for _, s := range []string{
		"a,b\n1,2\n", "1;2\n3;4\n", "x y\n1 2\n", "\"a\nb\",1\n", "a\tb\n,\n", "\xef\xbb\xbf1,2\n", "1,NA\n2,3\n", "a,b\n\"\"\"\",1e400\n", "1,2\n3\n",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		survive(t, CSV, writeIn(t, t.TempDir(), text))
		compareWithEncodingCSV(t, text)
	})
}

// compareWithEncodingCSV expects the same records where the standard library finds no
// fault. The standard library drops carriage returns inside quotes at other places.
func compareWithEncodingCSV(t *testing.T, text string) {
	if strings.Contains(text, "\r") {
		return
	}
	r := csv.NewReader(strings.NewReader(text))
	r.FieldsPerRecord = -1
	want, err := r.ReadAll()
	if err != nil {
		return
	}
	got, err := readAllRecords(text)
	if err != nil || !cmp.Equal(got, want) {
		t.Fatalf("%v\n%q\n%q", err, got, want)
	}
}

func FuzzLibSVM(f *testing.F) {
	for _, s := range []string{"1 1:2 3:4\n", "-1\n", "a 1:1e5 # c\n", "1 0:1\n", "1 99999999:1\n", "1 2:1 1:1\n", "1:2\n"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { survive(t, LibSVM, writeIn(t, t.TempDir(), text)) })
}

func FuzzNPY(f *testing.F) {
	le := binary.LittleEndian
	f.Add(npy("<f8", false, "2, 2", encode(le, []float64{1, 2, 3, 4})))
	f.Add(npy("<i2", true, "2, 2", encode(le, []int16{1, 2, 3, 4})))
	f.Add(npy("|u1", false, "1, 99999", nil))
	f.Add(npy("<f8", true, "99999, 99999", nil))
	f.Fuzz(func(t *testing.T, text string) { survive(t, NPY, writeIn(t, t.TempDir(), text)) })
}

func FuzzNPZ(f *testing.F) {
	f.Add("PK\x05\x06" + strings.Repeat("\x00", 18))
	f.Add("PK\x03\x04")
	f.Fuzz(func(t *testing.T, text string) { survive(t, NPZ, writeIn(t, t.TempDir(), text)) })
}

func FuzzIDX(f *testing.F) {
	f.Add("\x00\x00\x08\x01\x00\x00\x00\x02ab")
	f.Add("\x00\x00\x0d\x02\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x80\x7f")
	f.Add("\x00\x00\x0e\x03\x00\x00\x00\x02\x00\x01\x00\x01\x00\x00\x00\x01")
	f.Fuzz(func(t *testing.T, text string) { survive(t, IDX, writeIn(t, t.TempDir(), text)) })
}

func FuzzChunks(f *testing.F) {
	path := filepath.Join(f.TempDir(), "x.chunks")
	table, err := Open(background, Options{ChunkFile: path}, file(f, "x.csv", "a,b\n1,x\n2,y\n"))
	if err != nil {
		f.Fatal(err)
	}
	table.Close()
	good, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(good), true)
	f.Add(string(good[:70]), false)
	f.Fuzz(func(t *testing.T, text string, mend bool) {
		if mend {
			text = mendChunks([]byte(text))
		}
		survive(t, Chunks, writeIn(t, t.TempDir(), text))
	})
}

// mendChunks corrects all checksums, to test the code behind them.
func mendChunks(b []byte) string {
	le, end := binary.LittleEndian, int64(len(b))
	if end < chunkHeaderSize {
		return string(b)
	}
	text, length := int64(le.Uint64(b[8:])), int64(le.Uint32(b[16:]))
	if text < chunkHeaderSize || text > end-length {
		return string(b)
	}
	le.PutUint32(b[20:], checksum(b[text:][:length]))
	var d description
	if json.Unmarshal(b[text:][:length], &d) != nil || len(d.Columns) == 0 {
		return string(b)
	}
	step := int64(8*len(d.Columns)*chunkRows(len(d.Columns)) + 4)
	for lo := chunkHeaderSize; lo < text-4; lo += step {
		hi := min(lo+step, text) - 4
		le.PutUint32(b[hi:], checksum(b[lo:hi]))
	}
	return string(b)
}

// FuzzParquetFooter fuzzes the check of the description, which protects the library
// from false claims in it. The library itself is not fuzzed here. The headers of its
// pages can still claim more memory than a file has.
func FuzzParquetFooter(f *testing.F) {
	var b bytes.Buffer
	w := parquet.NewGenericWriter[struct {
		A float64
		B *string `parquet:"B,optional,dict,snappy"`
	}](&b)
	if err := w.Close(); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("PAR1\x19\xfc\xff\xff\xff\xff\x07\x00\x08\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, text []byte) {
		_ = checkParquetFooter(bytes.NewReader(text), int64(len(text)))
	})
}

// These are the worst claims that a small file can make. Opening it allocates less than
// 64 MiB in all.
func TestHostileMemory(t *testing.T) {
	racetest.Alone(t)
	for name, c := range map[string]struct {
		format Format
		text   string
	}{
		"columns of npy":    {NPY, npy("<f8", false, "1, 65536", nil)},
		"columns of idx":    {IDX, "\x00\x00\x08\x02\x00\x00\x00\x01\x00\x01\x00\x00"},
		"rows of npy":       {NPY, npy("<f8", true, "90000000000, 10", nil)},
		"features":          {LibSVM, "1 200000000:1\n-1 1:1\n"},
		"columns of csv":    {CSV, strings.Repeat(",", MaxColumns-1) + "\n"},
		"levels":            {CSV, manyLevels()},
		"a quote":           {CSV, "a,b\n1,\"" + strings.Repeat("x\n", 1<<20)},
		"a line":            {CSV, "a,b\n1," + strings.Repeat("x", 1<<20)},
		"a line of libsvm":  {LibSVM, "1 " + strings.Repeat("x", 1<<20)},
		"compressed zeros":  {CSV, gzipped(strings.Repeat("0", 8<<20))},
		"length of parquet": {Parquet, "PAR1\x00\xff\xff\xff\xffPAR1"},
		"list of parquet":   {Parquet, "PAR1\x19\xfc\xff\xff\xff\xff\x07\x00\x08\x00\x00\x00PAR1"},
		"header of npy":     {NPY, "\x93NUMPY\x02\x00\xff\xff\xff\xff"},
		"chunks of nothing": {Chunks, hugeChunks()},
	} {
		path := file(t, "x", c.text)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if table, err := Open(background, Options{Format: c.format}, path); err == nil {
			table.Close()
		}
		runtime.ReadMemStats(&after)
		survive(t, c.format, path)
		mib := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d bytes of file, %d MiB", name, len(c.text), mib)
		if mib > 64 {
			t.Errorf("%s: %d bytes of file cost %d MiB", name, len(c.text), mib)
		}
	}
}

// hugeChunks claims as many rows as a chunk file can have.
func hugeChunks() string {
	const rows, text = 1 << 44, `{"version":1,"rows":17592186044416,"columns":[{"name":"a","kind":"numeric"}]}`
	b := []byte(chunkMagic)
	b = binary.LittleEndian.AppendUint64(b, uint64(chunkOffset(rows, 1)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = binary.LittleEndian.AppendUint32(b, checksum([]byte(text)))
	return string(b) + text
}

func manyLevels() string {
	var b strings.Builder
	for i := range 2 * MaxLevels {
		b.WriteString("level" + formatNumber(float64(i)) + ",1\n")
	}
	return b.String()
}

func FuzzJSON(f *testing.F) {
	for _, s := range []string{"[{\"a\":1,\"b\":2}]", "{\"a\":1}\n{\"a\":null}\n", "[{\"a\":[", "{\"a\":\"x\",\"a\":2}"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) { survive(t, JSON, writeIn(t, t.TempDir(), text)) })
}
