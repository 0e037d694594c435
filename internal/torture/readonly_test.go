//go:build linux

package torture

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/bkbtuner/bkb/store/bolt"
	"github.com/bkbtuner/bkb/tuner/engine"
	"github.com/bkbtuner/bkb/tuner/study"
)

// TestReadOnlyDisk checks commands on a read-only disk. Those that read work, and those
// that write are refused.
func TestReadOnlyDisk(t *testing.T) {
	heavy(t)
	folder := filepath.Join(evidence(t, seed(t)), "disk")
	if err := os.Mkdir(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, "size=4m"); err != nil {
		lacking(t, "a small disk cannot be mounted here: %v", err)
	}
	defer func() { _ = syscall.Unmount(folder, syscall.MNT_DETACH) }()
	db := filepath.Join(folder, "tuner.db")
	st, err := bolt.Open(db, bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	svc := engine.Open(st, engine.Options{})
	_, err = svc.CreateStudy(context.Background(), "s", study.Create{Spec: spec(t)})
	if err == nil {
		_, err = svc.Ask(context.Background(), "s", study.Ask{})
	}
	if closeErr := svc.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	if err := syscall.Mount("", folder, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		lacking(t, "a disk cannot be made read-only here: %v", err)
	}
	copied := filepath.Join(filepath.Dir(folder), "copy.db")
	for _, c := range []struct {
		status int
		args   []string
	}{
		{0, []string{"studies"}},
		{0, []string{"trials", "s"}},
		{0, []string{"export", "s"}},
		{0, []string{"check"}},
		{0, []string{"backup", copied}},
		{6, []string{"ask", "s"}},
		{6, []string{"delete-study", "s", "--yes"}},
	} {
		cmd := exec.Command(tunerBinary(t), append([]string{"--db", db}, c.args...)...)
		cmd.Env = append(os.Environ(), "TUNER_SERVER=")
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState.ExitCode() != c.status {
			t.Errorf("tuner %v: %v, want status %d\n%s", c.args, err, c.status, out)
		}
	}
	sound(t, copied)
}
