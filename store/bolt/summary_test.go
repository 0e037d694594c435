package bolt

import (
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/store"
	"github.com/bkbtuner/bkb/tuner/study"
	"go.etcd.io/bbolt"
)

func summaryOf(t *testing.T, s *Store, id store.StudyID) string {
	t.Helper()
	list, err := s.Summaries(t.Context(), []store.StudyID{id})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) == 0 {
		return ""
	}
	return string(list[0].Data)
}

// A file of a program that stored no summaries has none, and gets them.
func TestSummariesOfGoldenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	writeFile(t, path, golden(t))
	s := mustOpen(t, path, Options{MustExist: true})
	info, err := s.Lookup(t.Context(), "few")
	if err != nil {
		t.Fatal(err)
	}
	if got := summaryOf(t, s, info.ID); got != "" {
		t.Errorf("summary %q", got)
	}
	for _, want := range []string{"saved", "again"} {
		if err := s.SaveSummaries(t.Context(), []store.Summary{{Study: info.ID, Position: info.Head, Data: []byte(want)}}); err != nil {
			t.Fatal(err)
		}
		if got := summaryOf(t, s, info.ID); got != want {
			t.Errorf("after saving the summary is %q, want %q", got, want)
		}
	}
	if err := s.Commit(t.Context(), info.ID, info.Head, trials(100, 1)[:1], []byte("committed")); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path, Options{MustExist: true})
	if got := summaryOf(t, s, info.ID); got != "committed" {
		t.Errorf("summary %q after a commit", got)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// An earlier program of the same format appends and deletes without a word to the
// summaries. They do not count then, the file is sound, and Compact removes them.
func TestSummariesAfterEarlierProgram(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	s := mustOpen(t, path, Options{})
	moved, gone, kept := fill(t, s, "moved", 1), fill(t, s, "gone", 1), fill(t, s, "kept", 1)
	for _, info := range []store.Info{moved, gone, kept} {
		if err := s.SaveSummaries(t.Context(), []store.Summary{{Study: info.ID, Position: info.Head, Data: []byte(info.Name)}}); err != nil {
			t.Fatal(err)
		}
	}
	rows := func() (n int) {
		t.Helper()
		if err := s.look(func(tx *bbolt.Tx) error {
			n = tx.Bucket(bucketSummaries).Inspect().KeyN
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	records, err := store.EncodeCommit(moved.ID, moved.Head, []study.Event{{Time: instant, Body: study.Paused{}}})
	if err != nil {
		t.Fatal(err)
	}
	err = s.committer.submit(t.Context(), 0, func(tx *transaction) error {
		log, _, err := logOf(tx.Tx, moved.ID)
		if err != nil {
			return err
		}
		appendRecords(log, moved.Head, records)
		old := tx.Bucket(bucketSummaries).Get(idKey(gone.ID))
		if _, err := tx.delete(gone.ID, 1<<20); err != nil {
			return err
		}
		return tx.Bucket(bucketSummaries).Put(idKey(gone.ID), old)
	})
	if err != nil {
		t.Fatal(err)
	}
	want := func(when string, count int) {
		t.Helper()
		if got := summaryOf(t, s, moved.ID) + summaryOf(t, s, gone.ID) + summaryOf(t, s, kept.ID); got != "kept" {
			t.Errorf("%s the summaries are %q", when, got)
		}
		if n := rows(); n != count {
			t.Errorf("%s there are %d rows, want %d", when, n, count)
		}
		wantSound(t, s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	want("then", 3)
	s = mustOpen(t, path, Options{})
	want("after opening", 3)
	if _, _, err := Compact(t.Context(), path, CompactOptions{}); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path, Options{})
	want("after compacting", 2)
}
