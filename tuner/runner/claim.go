package runner

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bkbtuner/bkb/internal/atomicfile"
)

// ErrClaimed is wrapped by the refusal of a directory that another run uses.
var ErrClaimed = errors.New("another run uses this directory")

// Claim is a directory of logs of one study, used by one run at a time. It keeps the name of
// the run's workers, so that the next run in the same directory continues with the trials that
// this one left.
type Claim struct {
	Dir    string
	InUse  string // the directory that was asked for, if another run uses it
	Worker string
	Unkept error // why the directory does not keep the name, such as a full disk
	file   *os.File
}

// ClaimDir claims a directory for a study and creates it if it is missing. An empty worker
// means the name that the directory keeps, or a new one.
func ClaimDir(dir, study, worker string) (*Claim, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("--log-dir %s: %w; choose another directory for logs", dir, err)
	}
	file, err := openPlain(dir, "worker", os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	c := &Claim{Dir: dir, Worker: worker, file: file}
	ok, err := atomicfile.Lock(file, true)
	switch {
	case err == nil && !ok:
		err = fmt.Errorf("%s: %w", dir, ErrClaimed)
	case err == nil:
		err = c.name(study)
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return c, nil
}

// ClaimFree claims a directory, or if another run uses it, the first of dir/run-2, dir/run-3
// and so on that is free.
func ClaimFree(dir, study string) (*Claim, error) {
	c, err := ClaimDir(dir, study, "")
	for n := 2; errors.Is(err, ErrClaimed); n++ {
		if c, err = ClaimDir(filepath.Join(dir, fmt.Sprintf("run-%d", n)), study, ""); err == nil {
			c.InUse = dir
		}
	}
	return c, err
}

// name refuses the directory of another study, and determines the name of the workers.
func (c *Claim) name(study string) error {
	file, err := openPlain(c.Dir, "study", os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if of, _, err := keep(file, study); err != nil || of != study {
		return cmp.Or(err, fmt.Errorf("--log-dir %s: it has the logs of study %s; choose another directory for logs", c.Dir, of))
	}
	if c.Worker != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "run"
	}
	c.Worker, c.Unkept, err = keep(c.file, fmt.Sprintf("%.64s-%s", host, strings.ToLower(rand.Text()[:8])))
	return err
}

// keep returns the name that a file has, else the new one, which the file has from now on.
func keep(file *os.File, fresh string) (name string, unkept, err error) {
	text, err := io.ReadAll(io.LimitReader(file, 1024))
	if name = strings.TrimSpace(string(text)); name != "" || err != nil {
		return name, nil, err
	}
	if _, unkept = fmt.Fprintln(file, fresh); unkept != nil {
		_ = file.Truncate(0) // a part would be another name
	}
	return fresh, unkept, nil
}

// Release lets another run use the directory.
func (c *Claim) Release() error { return c.file.Close() }
