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

// goldenPath has a file that was written when its format was current.
var goldenPath = filepath.Join("testdata", fmt.Sprintf("format%d.db.gz", Format))

func golden(t *testing.T) []byte {
	t.Helper()
	packed, err := os.ReadFile(goldenPath)
	if err != nil {
		t.Fatalf("%v; write it with go test ./store/bolt -run TestGoldenFile -new-format", err)
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

// calledEvents returns the events of the study callers in the golden file. Each event names
// its caller.
func calledEvents() []study.Event {
	events := append([]study.Event{opened()}, trials(0, 2)...)
	for i := range events {
		events[i].Caller = fmt.Sprint("token ", i)
	}
	return events
}

func writeGolden(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	s := mustOpen(t, path, Options{})
	for name, n := range goldenTrials {
		fill(t, s, name, n)
	}
	if _, err := s.Create(t.Context(), "callers", calledEvents()); err != nil {
		t.Fatal(err)
	}
	info, err := s.Lookup(t.Context(), "few")
	if err == nil {
		err = s.SaveSummaries(t.Context(), []store.Summary{{Study: info.ID, Position: info.Head, Data: []byte("a summary")}})
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
	f, openErr := os.OpenFile(goldenPath, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err := errors.Join(err, w.Close(), openErr); err != nil {
		t.Fatal(err)
	}
	_, err = f.Write(packed.Bytes())
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestGoldenFile reads the file of the format, writes to it and reads it again. A golden
// file is never written again.
func TestGoldenFile(t *testing.T) {
	if _, err := os.Stat(goldenPath); errors.Is(err, os.ErrNotExist) && *newFormat {
		writeGolden(t)
	}
	path := filepath.Join(t.TempDir(), "studies.db")
	writeFile(t, path, golden(t))
	for _, readOnly := range []bool{true, false} {
		s, err := Open(path, Options{MustExist: true, ReadOnly: readOnly})
		if err != nil {
			t.Fatal(err)
		}
		for name, n := range goldenTrials {
			wantPrefix(t, s, name, headOf(n))
		}
		wantEvents(t, s, "callers", calledEvents())
		if id, studies := s.identity, s.committer.studies.Load(); id.Format != Format || int(studies) != len(goldenTrials)+1 {
			t.Errorf("%+v, %d studies", id, studies)
		}
		report, err := s.Check(t.Context(), nil)
		if err != nil || !report.OK() || report.Summaries != 1 {
			t.Errorf("%+v, %v", report, err)
		}
		if !readOnly {
			fill(t, s, "new", 2)
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
