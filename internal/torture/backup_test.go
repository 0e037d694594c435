//go:build linux

package torture

import (
	"context"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/store/verify"
	"github.com/bkbtuner/bkb/tuner"
	"github.com/bkbtuner/bkb/tuner/engine/view"
)

// killedAfter runs the program and kills it after a time. ended reports whether the
// program finished before that.
func killedAfter(t *testing.T, life time.Duration, args ...string) (ended bool) {
	t.Helper()
	cmd := exec.Command(tunerBinary(t), args...)
	cmd.Env = append(os.Environ(), "TUNER_DB=", "TUNER_SERVER=", "TUNER_TOKEN=")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(life, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	return err == nil
}

func sound(t *testing.T, path string) {
	t.Helper()
	report, err := bolt.Check(context.Background(), path, &verify.Options{Summaries: view.CheckSummary})
	if err != nil || !report.OK() {
		t.Errorf("%s: %v, %+v", path, err, report)
	}
}

// TestKillBackups kills backups of a served file and restores at random moments. Every
// file with the name of a backup is whole. The target of a restore is as before or is
// the backup.
func TestKillBackups(t *testing.T) {
	heavy(t)
	n := often(t, "BACKUPS", 6)
	seed := seed(t)
	random := rand.New(rand.NewPCG(seed, 9))
	folder := evidence(t, seed)
	db, dir, target := filepath.Join(folder, "tuner.db"), filepath.Join(folder, "backups"), filepath.Join(folder, "restored.db")
	server, err := serve(t, db, io.Discard, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer server.kill()
	ctx, cancel := context.WithCancel(context.Background())
	crowd, worked := newCrowd(t), make(chan struct{})
	go func() {
		defer close(worked)
		crowd.run(ctx, seed, "b", func() tuner.Service { return patient{server.dial(t)} })
	}()
	defer func() { cancel(); <-worked }()
	const keep = 3
	args := []string{"--server", server.address, "backup", "--to", dir, "--keep", "3"}
	backups := func() (names []string, partial int) {
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if strings.HasSuffix(e.Name(), ".tmp") {
				partial++
			} else {
				names = append(names, filepath.Join(dir, e.Name()))
			}
		}
		return names, partial
	}
	killed := 0
	for range n {
		if !killedAfter(t, time.Duration(random.IntN(150))*time.Millisecond, args...) {
			killed++
		}
		names, _ := backups()
		for _, name := range names {
			sound(t, name)
		}
		if len(names) > keep+1 {
			t.Errorf("%d backups are kept", len(names))
		}
	}
	if !killedAfter(t, time.Minute, args...) {
		t.Fatal("a backup that was not killed failed")
	}
	names, partial := backups()
	if partial > 0 || len(names) == 0 || len(names) > keep {
		t.Errorf("in the end there are %d backups and %d partial files", len(names), partial)
	}
	restores := 0
	for range n {
		from := names[random.IntN(len(names))]
		if !killedAfter(t, time.Duration(random.IntN(60))*time.Millisecond, "--db", target, "restore", "--force", from) {
			restores++
		}
		if _, err := os.Stat(target); err == nil {
			sound(t, target)
		}
	}
	if !killedAfter(t, time.Minute, "--db", target, "restore", "--force", names[0]) {
		t.Error("a restore that was not killed failed")
	}
	sound(t, target)
	figures(t, "%d of %d backups and %d of %d restores killed: what has the name of a backup is whole, what is restored to is sound", killed, n, restores, n)
}
