package bolt

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
)

var newFormat = flag.Bool("new-format", false, "write the golden file of the current format, if there is none")

// goldenTrials is the number of trials of each study in a golden file.
var goldenTrials = map[string]int{"empty": 0, "few": 3, "many": 200}

// golden returns a file that was written when its format was current.
func golden(t *testing.T, format int) []byte {
	t.Helper()
	packed, err := os.ReadFile(goldenPath(format))
	if err != nil {
		t.Fatalf("%v; write it with go test ./store/bolt -run TestGoldenFiles -new-format", err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func goldenPath(format int) string {
	return filepath.Join("testdata", fmt.Sprintf("format%d.db.gz", format))
}

// calledEvents returns the events of the study callers, in golden files since format 2.
// Each event names its caller.
func calledEvents() []study.Event {
	events := append([]study.Event{opened()}, trials(0, 2)...)
	for i := range events {
		events[i].Caller = fmt.Sprint("token ", i)
	}
	return events
}

func writeGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	s := mustOpen(t, path, Options{Program: fmt.Sprintf("tuner of format %d", Format)})
	for name, n := range goldenTrials {
		fill(t, s, name, n)
	}
	for name, events := range map[string][]study.Event{"callers": calledEvents()} {
		if _, err := s.Create(t.Context(), name, events); err != nil {
			t.Fatal(err)
		}
	}
	info, err := s.Lookup(t.Context(), "few")
	if err == nil {
		err = s.SaveSnapshot(t.Context(), info.ID, store.Snapshot{Position: info.Head, Data: []byte("a snapshot")})
	}
	if err := errors.Join(err, s.Delete(t.Context(), fill(t, s, "deleted", 5).ID), s.Close()); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	_, err = w.Write(b)
	f, openErr := os.OpenFile(goldenPath(Format), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err := errors.Join(err, w.Close(), openErr); err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(packed.Bytes())
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestGoldenFiles reads a file of each format ever released, writes to it and reads it
// again. The golden files are never written again.
func TestGoldenFiles(t *testing.T) {
	if _, err := os.Stat(goldenPath(Format)); errors.Is(err, os.ErrNotExist) && *newFormat {
		writeGolden(t)
	}
	for format := 1; format <= Format; format++ {
		path := filepath.Join(t.TempDir(), "studies.db")
		writeFile(t, path, golden(t, format))
		for _, readOnly := range []bool{true, false} {
			s, err := Open(path, Options{MustExist: true, ReadOnly: readOnly})
			if err != nil {
				t.Fatal(err)
			}
			for name, n := range goldenTrials {
				wantPrefix(t, s, name, headOf(n))
			}
			studies := len(goldenTrials)
			if format >= 2 {
				studies++
				wantEvents(t, s, "callers", calledEvents())
			}
			if status, err := s.Status(t.Context()); err != nil || status.Format != format || status.Studies != studies {
				t.Errorf("format %d: %+v, %v", format, status, err)
			}
			report, err := s.Check(t.Context(), nil)
			if err != nil || !report.OK() || report.Snapshots != 1 {
				t.Errorf("format %d: %+v, %v", format, report, err)
			}
			if !readOnly {
				fill(t, s, "new", 2)
				if id := s.identity.Load(); id.Format != Format {
					t.Errorf("after a write the format is %d, want %d", id.Format, Format)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
		}
		s := mustOpen(t, path, Options{MustExist: true})
		wantPrefix(t, s, "new", headOf(2))
		wantSound(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// A file keeps its format until the first write of a program with a newer format. From
// then on older programs refuse it and name both formats.
func TestNewerFormatFromTheFirstWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	writeFile(t, path, golden(t, Format))
	open := func(format int) *Store {
		s, err := Open(path, Options{MustExist: true, Program: "tuner v9.1", tuning: tuning{format: format}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open(Format + 1)
	wantPrefix(t, s, "few", headOf(3))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(Format) // nothing was written
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(Format + 1)
	store := s.identity.Load().Store
	fill(t, s, "new", 1)
	if id := s.identity.Load(); id.Format != Format+1 || id.Writer != "tuner v9.1" || id.Store != store {
		t.Errorf("the identity is %+v", id)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path, Options{MustExist: true})
	if want := fmt.Sprintf("tuner v9.1 wrote format %d, but this program (%s) reads up to format %d", Format+1, programVersion(), Format); !errors.Is(err, ErrNewerFormat) || !bytes.Contains([]byte(err.Error()), []byte(want)) {
		t.Errorf("an older program says %v, want %q", err, want)
	}
}

// A new format of records needs a new format of the file. Otherwise older programs
// would report each new record as damaged.
func TestFileFormatGoesWithRecords(t *testing.T) {
	if recordFormats[Format] != store.Format {
		t.Errorf("files of format %d hold records up to format %d, but format %d is written: raise Format, and add it to recordFormats and docs/store.md",
			Format, recordFormats[Format], store.Format)
	}
}
