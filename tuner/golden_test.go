package tuner

import (
	"bufio"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/bkbtuner/bkb/internal/simd"
	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner/study"
)

// goldenPaths are the numeric paths on which golden logs replay. They were made with AVX2.
// The sums of the other path have the same order and roundings (simd.TestPathsAgree). On
// portable arithmetic another suggestion may be the best.
var goldenPaths = []string{"avx2", "avx512"}

// TestGoldenLogs replays logs made by earlier programs, and by this one when its model
// events got their version. Every suggestion and every model event must be as stored.
// testdata/version<model version>/<study>.log.gz holds the records of one study, each
// preceded by its length. The studies are small. They cover continuous, mixed and
// conditional spaces, reports and pruning, several objectives, constraints, failures,
// costs, replicates at a binding cap, late results, and spaces that run out. Those of version
// 5 add branches with a far model, outliers, limits of metrics, constraints between parameters
// and a repeated best trial. Those of version 6 have failures beside an optimum and at random, far
// models of few coordinates and of branches, told standard errors of a limited metric, eight
// workers, and samples of an evolution. That of version 7 has suggestions of quadratics.
// That of version 8 has eight workers and quadratics beside failures.
func TestGoldenLogs(t *testing.T) {
	if path := simd.For[float64]().Path; !slices.Contains(goldenPaths, path) {
		t.Skipf("these tests compute by %s; golden logs replay by one of %v", path, goldenPaths)
	}
	paths, err := filepath.Glob("testdata/version*/*.log.gz")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no golden logs: %v", err)
	}
	for _, path := range paths {
		t.Run(filepath.Base(filepath.Dir(path))+"/"+filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			events := goldenEvents(t, path)
			s := memory.New()
			if _, err := s.Create(t.Context(), "golden", events); err != nil {
				t.Fatal(err)
			}
			u := Open(s, Options{})
			defer u.Close()
			r, err := u.Replay(t.Context(), "golden", nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Suggestions == 0 || len(r.Differences) > 0 || len(r.ModelDifferences) > 0 {
				t.Errorf("%d suggestions and %d models recomputed; different: %v, models at %v",
					r.Suggestions, r.Models, r.Differences, r.ModelDifferences)
			}
		})
	}
}

// goldenEvents reads a golden log.
func goldenEvents(t *testing.T, path string) []study.Event {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	in, decoder := bufio.NewReader(z), store.NewDecoder(7)
	var events []study.Event
	for {
		n, err := binary.ReadUvarint(in)
		if errors.Is(err, io.EOF) {
			return events
		}
		record := make([]byte, n)
		if err == nil {
			_, err = io.ReadFull(in, record)
		}
		if err != nil {
			t.Fatal(err)
		}
		e, err := decoder.Decode(study.Position(len(events)+1), record)
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, e)
	}
}
