package bolt

import (
	"path/filepath"
	"testing"

	"github.com/bkbtuner/bkb/store"
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

// Summaries are in the file, and go with their study.
func TestSummaries(t *testing.T) {
	path := filepath.Join(t.TempDir(), "studies.db")
	writeFile(t, path, golden(t))
	s := mustOpen(t, path, Options{MustExist: true})
	info, err := s.Lookup(t.Context(), "few")
	if err != nil {
		t.Fatal(err)
	}
	if got := summaryOf(t, s, info.ID); got != "a summary" {
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
	if err := s.Commit(t.Context(), info.ID, info.Head, trials(3, 1)[:1], []byte("committed")); err != nil {
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
	if _, _, err := Compact(t.Context(), path, CompactOptions{}); err != nil {
		t.Fatal(err)
	}
	s = mustOpen(t, path, Options{MustExist: true})
	if got := summaryOf(t, s, info.ID); got != "committed" {
		t.Errorf("summary %q after compacting", got)
	}
	if err := s.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	if got := summaryOf(t, s, info.ID); got != "" {
		t.Errorf("summary %q of a deleted study", got)
	}
	wantSound(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}
