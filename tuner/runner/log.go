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
	"sync"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"github.com/bkbtuner/bkb/tuner/study"
)

// DefaultMaxLog is the limit on the log of a trial that tuner run sets.
const DefaultMaxLog = 64 << 20

// trialLog keeps the output of a trial's command as far as it can. It takes everything, because
// a command whose output is not read stops or dies.
type trialLog struct {
	mu   sync.Mutex
	file *os.File // nil if nothing is kept any more
	left int64    // bytes until the limit, if there is one
	max  int64
	warn func(error)
}

// openLog opens the log of a trial. A trial that starts again appends to it.
func (r *run) openLog(t study.Trial) (*trialLog, error) {
	l := &trialLog{max: r.options.MaxLog}
	if r.options.LogDir == "" {
		return l, nil
	}
	name := fmt.Sprintf("trial-%d.log", t.Number)
	path := filepath.Join(r.options.LogDir, name)
	l.warn = func(err error) {
		r.warn([]string{fmt.Sprintf("the log %s is cut, and the trial continues: %v; make room, or choose another directory for logs", path, err)})
	}
	file, err := openPlain(r.options.LogDir, name, os.O_WRONLY|os.O_APPEND, 0o644)
	switch {
	case errors.Is(err, errNotPlain):
		return nil, err
	case err != nil:
		l.warn(err)
		return l, nil
	}
	l.file = file
	l.left = l.max
	if info, err := l.file.Stat(); err == nil {
		l.left = max(l.max-info.Size(), 0)
	}
	return l, nil
}

// errNotPlain is wrapped by the refusals of [openPlain].
var errNotPlain = errors.New("is a link or no file")

// openPlain opens a file of a folder, and creates it if it is missing. A link could lead to a file
// that the author of the command must not write to.
func openPlain(folder, name string, flag int, mode os.FileMode) (*os.File, error) {
	dir, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	if info, err := dir.Lstat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s %w (%s); remove it, or choose another directory for logs", filepath.Join(folder, name), errNotPlain, info.Mode().Type())
	}
	return dir.OpenFile(name, flag|os.O_CREATE, mode)
}

// Write keeps what fits. It never fails.
func (l *trialLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.max <= 0:
		l.keep(p)
	case l.left > 0:
		l.keep(p[:min(int64(len(p)), l.left)])
		if l.left -= int64(len(p)); l.left <= 0 {
			l.keep(fmt.Appendf(nil, "\n# the output beyond %d bytes is not kept (--max-log)\n", l.max))
		}
	}
	return len(p), nil
}

// keep appends to the file, and gives it up after an error.
func (l *trialLog) keep(p []byte) {
	if l.file == nil || len(p) == 0 {
		return
	}
	if _, err := l.file.Write(p); err != nil {
		l.warn(err)
		l.file.Close()
		l.file = nil
	}
}

// remark appends a line of the runner's own, also beyond the limit.
func (l *trialLog) remark(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep(fmt.Appendf(nil, "# "+format+"\n", args...))
}

func (l *trialLog) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

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
