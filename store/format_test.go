package store_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/store/storetest/eventtest"
	"github.com/bkbtuner/bkb/tuner/study"
)

var newFormat = flag.Bool("new-format", false, "write golden records of the current format, if it has none")

// TestGoldenRecords reads the records that were written when their format was current,
// example by example. File testdata/format<version>/<position>.record holds
// Examples()[position−1] of study 7. The files are never written again.
func TestGoldenRecords(t *testing.T) {
	for i, want := range eventtest.Examples() {
		pos := study.Position(i + 1)
		name := fmt.Sprintf("%02d.record", pos)
		found, err := filepath.Glob(filepath.Join("testdata", "format*", name))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join("testdata", fmt.Sprintf("format%d", store.Format), name)
		if len(found) > 0 {
			path = found[0]
		} else if *newFormat {
			writeGolden(t, path, pos, want)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		got, err := store.NewDecoder(someStudy).Decode(pos, b)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := eventtest.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", path, diff)
		}
	}
}

func writeGolden(t *testing.T, path string, pos study.Position, e study.Event) {
	b, err := store.AppendRecord(nil, someStudy, pos, e)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}
