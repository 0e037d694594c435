package bolt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/bkbtuner/bkb/internal/atomicfile"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

var errLocked = errors.New("locked")

// Open opens the store at path. If there is no file, it creates one unless the options
// forbid it. Before bbolt opens the file, Open locks and identifies it and checks
// every page in use, which takes about 40 ms per 100 MB in the page cache. Then it
// compares names, studies and logs with each other.
//
// The error is a [FileError], which names the problem and the remedy.
func Open(path string, options Options) (*Store, error) {
	o := options.withDefaults()
	for range creationTries {
		s, err := openExisting(path, o)
		if !errors.Is(err, ErrMissing) || o.MustExist || o.ReadOnly {
			return s, err
		}
		if err := create(path, o); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	return nil, &FileError{
		Path: path, Reason: ErrMissing, Detail: "it disappears after its creation, or is a dangling link",
		Remedy: "look for another program that deletes files in that directory",
	}
}

// creationTries bounds the race with processes that create and delete the file.
const creationTries = 3

func openExisting(path string, o Options) (*Store, error) {
	if _, err := statFile(path); err != nil {
		return nil, err
	}
	p := &opening{path: path, options: o}
	db, err := p.open()
	if errors.Is(err, syscall.ENOMEM) && o.MapSize > 0 {
		o.Logger.Warn("not enough address space for the file to grow, for example because of ulimit -v; "+
			"writes that grow the file wait for reads and backups in progress; raise that limit", slog.String("path", path), slog.Int64("bytes", o.MapSize))
		o.MapSize = 0
		p = &opening{path: path, options: o}
		db, err = p.open()
	}
	if err != nil {
		return nil, err
	}
	s := newStore(p, db)
	s.largest.Store(p.inspection.meta.bytes())
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.release())
	}
	p.report()
	if !p.options.ReadOnly {
		atomicfile.Sweep(p.path) // of a killed Compact or Restore
	}
	s.start()
	return s, nil
}

// opening is one attempt to open a file.
type opening struct {
	path       string
	options    Options
	file       *os.File // to close if bbolt does not open it
	inspection inspection
}

// open lets bbolt open the file. Bbolt calls openFile, which locks and
// inspects it.
func (p *opening) open() (*bbolt.DB, error) {
	options := p.options.forBbolt()
	options.OpenFile = p.openFile
	var db *bbolt.DB
	err := guarded(func() (err error) {
		db, err = bbolt.Open(p.path, p.options.FileMode, options)
		return err
	})
	if err == nil {
		return db, nil
	}
	if p.file != nil {
		_ = p.file.Close() // already closed by bbolt, unless it panicked
	}
	if refusal, ok := errors.AsType[*FileError](err); ok {
		return nil, refusal
	}
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return nil, p.inUse(p.file)
	case errors.Is(err, ErrDamaged):
		return nil, damaged(p.path, "%v", err)
	default:
		return nil, explainOpen(p.path, err)
	}
}

// openFile is called by bbolt.
func (p *opening) openFile(path string, flag int, _ os.FileMode) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, flag&^os.O_CREATE, 0)
		if err != nil {
			return nil, explainOpen(path, err)
		}
		same, err := p.admit(f)
		if err == nil && same {
			p.file = f
			return f, nil
		}
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
}

// admit locks and inspects the file. same is false if another file replaced it before
// it was locked.
func (p *opening) admit(f *os.File) (same bool, err error) {
	if name := networkFileSystem(f); name != "" {
		return false, &FileError{
			Path: p.path, Reason: ErrNetworkDrive, Detail: name + " cannot guarantee that acknowledged data are on disk",
			Remedy: "move the file to a local disk of the machine that serves it",
		}
	}
	err = lock(f, !p.options.ReadOnly, p.options.LockTimeout)
	if errors.Is(err, errLocked) {
		return false, p.inUse(f)
	}
	if err != nil {
		return false, err
	}
	info, err := f.Stat()
	if err != nil {
		return false, err
	}
	if current, err := os.Stat(p.path); err != nil || !os.SameFile(info, current) {
		return false, err
	}
	if p.inspection, err = inspect(p.path, f, info.Size()); err != nil {
		return false, err
	}
	reader := pageReader{r: f, metaPage: p.inspection.meta.metaPage}
	return true, inspectTree(context.Background(), p.path, reader)
}

// inUse names the process that has the file open, if the system says.
func (p *opening) inUse(f *os.File) error {
	e := &FileError{Path: p.path, Reason: ErrInUse, Remedy: "stop that process, or use the server that has the store open"}
	if p.options.LockTimeout > 0 {
		e.Detail = fmt.Sprintf("waited %v", p.options.LockTimeout.Round(time.Millisecond))
	}
	info, err := os.Stat(p.path)
	if f == nil || err != nil {
		return e
	}
	if pid, name := holder(info); pid != 0 {
		e.PID, e.Name = pid, name
		e.Detail = strings.TrimSuffix(fmt.Sprintf("process %d (%s) has it open; %s", pid, name, e.Detail), "; ")
	}
	return e
}

// report logs warnings about the file.
func (p *opening) report() {
	log := p.options.Logger
	if m := p.inspection.meta; m.lost {
		log.Warn("one of the two meta pages was damaged, and the other one is used. If the damaged page was the newer one, "+
			"as after a loss of power during a commit, the last commit is lost; run tuner check when no process uses the file",
			slog.String("path", p.path), slog.Uint64("transaction", m.txid), slog.Uint64("transaction of the damaged page", m.lostTx))
	}
	if p.options.UnsafeNoSync {
		log.Warn("the store acknowledges writes that are not on disk, and a loss of power may lose all data", slog.String("path", p.path))
	}
}
