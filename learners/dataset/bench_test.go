package dataset

import (
	"encoding/csv"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/learners/data"
)

// benchCSV returns n rows of 10 numbers in the usual number format of programs.
func benchCSV(n int) string {
	r := rand.New(rand.NewPCG(1, 2))
	var b strings.Builder
	for range n {
		for c := range 10 {
			if c > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.FormatFloat(r.NormFloat64(), 'g', 6, 64))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// BenchmarkCSV reads a file. In the same run it reads the file with encoding/csv and
// strconv into a slice. ratio is their time over ours.
func BenchmarkCSV(b *testing.B) {
	const n = 20_000
	text := benchCSV(n)
	path := file(b, "x.csv", text)
	b.SetBytes(int64(len(text)))
	var ours, theirs time.Duration
	for b.Loop() {
		start := time.Now()
		opened(b, Options{}, path)
		ours += time.Since(start)
		b.StopTimer()
		start = time.Now()
		if data, err := standardCSV(path); err != nil || len(data) != 10*n {
			b.Fatal(err, len(data))
		}
		theirs += time.Since(start)
		b.StartTimer()
	}
	b.ReportMetric(n*float64(b.N)/ours.Seconds(), "rows/s")
	b.ReportMetric(theirs.Seconds()/ours.Seconds(), "ratio")
}

func standardCSV(path string) ([]float64, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.ReuseRecord = true
	var data []float64
	for {
		rec, err := r.Read()
		if err == io.EOF {
			return data, nil
		} else if err != nil {
			return nil, err
		}
		for _, s := range rec {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				return nil, err
			}
			data = append(data, v)
		}
	}
}

// BenchmarkLibSVM reads rows of 50 features out of 10,000.
func BenchmarkLibSVM(b *testing.B) {
	const n = 5_000
	r := rand.New(rand.NewPCG(1, 2))
	var s strings.Builder
	for range n {
		s.WriteString("1")
		for k := range 50 {
			fmt.Fprintf(&s, " %d:%.4g", 200*k+r.IntN(200)+1, r.NormFloat64())
		}
		s.WriteByte('\n')
	}
	path := file(b, "x.svm", s.String())
	b.SetBytes(int64(s.Len()))
	for b.Loop() {
		opened(b, Options{}, path)
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkEncode makes z-scores of a table in memory.
func BenchmarkEncode(b *testing.B) {
	const n = 20_000
	table := opened(b, Options{}, file(b, "x.csv", benchCSV(n)))
	e := fitted(b, table, nil, data.EncodingOptions{})
	for b.Loop() {
		applied(b, e, table)
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkChunks reads and encodes a chunk file.
func BenchmarkChunks(b *testing.B) {
	const n = 50_000
	dir := b.TempDir()
	table := opened(b, Options{ChunkFile: dir + "/x.chunks"}, file(b, "x.csv", benchCSV(n)))
	src := applied(b, fitted(b, table, nil, data.EncodingOptions{}), table)
	b.SetBytes(n * 40)
	for b.Loop() {
		cursor, err := src.OpenPairs(background)
		if err != nil {
			b.Fatal(err)
		}
		var block *data.Block
		for {
			if block, err = cursor.Next(background, 256, block); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		cursor.Close()
	}
	b.ReportMetric(n*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
}
