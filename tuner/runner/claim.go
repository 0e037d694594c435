package runner

import (
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

// Claim is a directory of logs, used by one run at a time. It keeps the name of the run's
// workers, so that the next run in the same directory continues with the trials that this
// one left.
type Claim struct {
	Dir    string
	InUse  string // the directory that was asked for, if another run uses it
	Worker string
	Unkept error // why the directory does not keep the name, such as a full disk
	file   *os.File
}

// ClaimDir claims a directory and creates it if it is missing. An empty worker means the
// name that the directory keeps, or a new one.
func ClaimDir(dir, worker string) (*Claim, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	file, err := openPlain(dir, "worker", os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if ok, err := atomicfile.Lock(file, true); !ok || err != nil {
		file.Close()
		if err == nil {
			err = fmt.Errorf("%s: %w", dir, ErrClaimed)
		}
		return nil, err
	}
	c := &Claim{Dir: dir, Worker: worker, file: file}
	if err := c.name(); err != nil {
		file.Close()
		return nil, err
	}
	return c, nil
}

// ClaimFree claims a directory, or if another run uses it, the first of dir/run-2, dir/run-3
// and so on that is free.
func ClaimFree(dir string) (*Claim, error) {
	c, err := ClaimDir(dir, "")
	for n := 2; errors.Is(err, ErrClaimed); n++ {
		if c, err = ClaimDir(filepath.Join(dir, fmt.Sprintf("run-%d", n)), ""); err == nil {
			c.InUse = dir
		}
	}
	return c, err
}

// name determines the name of the workers.
func (c *Claim) name() error {
	if c.Worker != "" {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(c.file, 128))
	if err != nil {
		return err
	}
	if c.Worker = strings.TrimSpace(string(text)); c.Worker != "" {
		return nil
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "run"
	}
	c.Worker = fmt.Sprintf("%.64s-%s", host, strings.ToLower(rand.Text()[:8]))
	if _, c.Unkept = fmt.Fprintln(c.file, c.Worker); c.Unkept != nil {
		_ = c.file.Truncate(0) // a part would be another name
	}
	return nil
}

// Release lets another run use the directory.
func (c *Claim) Release() error { return c.file.Close() }
