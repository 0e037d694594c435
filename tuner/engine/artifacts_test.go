package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/memory"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/artifacts"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestArtifactsEndWithTheStudy deletes studies with artifacts, and kills the service between the
// study and them. A later study of the name gets none, and a start a day later removes what is left.
func TestArtifactsEndWithTheStudy(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "a")
	st := newFaulty() // stays open
	create := func(tn *Engine) {
		t.Helper()
		if _, err := tn.CreateStudy(t.Context(), "s", study.Create{Spec: testSpec(t, nil)}); err != nil {
			t.Fatal(err)
		}
		ask(t, tn, study.Ask{})
	}
	put := func(tn *Engine, name string) {
		t.Helper()
		if _, err := tuner.Upload(t.Context(), tn, name, 0, "x", 4, strings.NewReader("data")); err != nil {
			t.Fatal(err)
		}
	}
	folders := func() int {
		t.Helper()
		all, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(all)
	}
	tn := Open(st, Options{Artifacts: artifacts.New(dir, 0)})
	create(tn)
	put(tn, "s")
	tell(t, tn, 0, loss(1))
	put(tn, "s") // of a trial that has ended
	if n := folders(); n != 1 {
		t.Fatalf("there are %d folders", n)
	}
	if err := tn.DeleteStudy(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
	if n := folders(); n != 0 {
		t.Errorf("after the deletion there are %d folders", n)
	}
	create(tn)
	put(tn, "s")
	info, err := st.Lookup(t.Context(), "s")
	if err != nil {
		t.Fatal(err)
	}
	if err := tn.Close(); err != nil {
		t.Fatal(err)
	}
	if err := st.Delete(t.Context(), info.ID); err != nil {
		t.Fatal(err)
	}
	// The first start finds that the study is missing, and one a day later removes its artifacts.
	for _, done := range []func() bool{
		func() bool {
			marks, _ := filepath.Glob(filepath.Join(dir, "*", "missing"))
			old := time.Now().Add(-25 * time.Hour)
			return len(marks) == 1 && os.Chtimes(marks[0], old, old) == nil
		},
		func() bool { return folders() == 0 },
	} {
		tn = Open(st, Options{Artifacts: artifacts.New(dir, 0), LongLived: true})
		for begun := time.Now(); !done(); time.Sleep(time.Millisecond) {
			if time.Since(begun) > 10*time.Second {
				t.Fatal("a start left the artifacts of a study that is gone as they were")
			}
		}
		if err := tn.Close(); err != nil {
			t.Fatal(err)
		}
	}
	tn = Open(st, Options{Artifacts: artifacts.New(dir, 0)})
	defer tn.Close()
	create(tn)
	if list, err := tn.Artifacts(t.Context(), "s", tuner.ListArtifacts{}); err != nil || len(list) > 0 {
		t.Errorf("a new study has %v, %v", list, err)
	}
}

// TestNoArtifacts checks that a service without a folder says what to do.
func TestNoArtifacts(t *testing.T) {
	t.Parallel()
	tn := open(t, memory.New(), Options{}, nil)
	ask(t, tn, study.Ask{})
	_, err := tuner.Upload(t.Context(), tn, "s", 0, "x", 4, strings.NewReader("data"))
	wantCode(t, err, tuner.Unsupported, "keep the studies in a file", "tuner serve --artifacts")
	if err := tn.DeleteStudy(t.Context(), "s"); err != nil {
		t.Error(err)
	}
}
