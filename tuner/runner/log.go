package runner

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

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
