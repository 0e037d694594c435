package bolt

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/bkbtuner/bkb/store"
)

// watchInterval is how often the file is compared with the one at its path. The store
// stops after two failed comparisons in a row.
const watchInterval = time.Second

// watch stops the store when its file was truncated or is no longer at its path. The
// next program would miss writes after a move.
func (s *Store) watch() {
	defer close(s.watched)
	tick := time.NewTicker(s.options.tuning.watch)
	defer tick.Stop()
	for missed := 0; ; {
		select {
		case <-s.leaving:
			return
		case <-s.failed:
			return
		case <-tick.C:
		}
		if err := s.checkSize(); err != nil {
			return
		}
		moved := s.moved()
		if moved == nil {
			missed = 0
		} else if missed++; missed > 1 {
			_ = s.fail(fmt.Errorf("%w: %w", store.ErrClosed, moved))
			return
		}
	}
}

// Moved returns [ErrMoved] if the file is no longer at its path now and after the time in which the
// store would notice by itself.
func (s *Store) Moved() error {
	if s.moved() == nil {
		return nil
	}
	time.Sleep(s.options.tuning.watch)
	return s.moved()
}

// moved returns an error if the file is no longer at its path.
func (s *Store) moved() error {
	info, err := s.file.Stat()
	if err != nil {
		return nil
	}
	if there, detail := at(s.place, info); !there {
		return fileError(s.place, ErrMoved, detail, "the store has stopped; put the file back or restore a backup, and start again")
	}
	return nil
}

// checkSize stops the store if its file became shorter, which the store itself never causes. It
// is also called before each commit. When a commit fails, bbolt reads all pages in a goroutine of
// its own, and a fault there ends the process with a stack trace.
func (s *Store) checkSize() error {
	info, err := s.file.Stat()
	if err != nil {
		return nil
	}
	for {
		largest := s.largest.Load()
		if info.Size() < largest {
			return s.broken(fmt.Errorf("it was truncated from %d to %d bytes while in use", largest, info.Size()))
		}
		if s.largest.CompareAndSwap(largest, info.Size()) {
			return nil
		}
	}
}

// at tells whether a file is the one at path. If the system does not say, it is assumed to be.
func at(path string, file fs.FileInfo) (there bool, detail string) {
	current, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, "there is nothing at this path now"
	case err != nil:
		return true, ""
	case !os.SameFile(file, current):
		return false, "there is another file at this path now"
	default:
		return true, ""
	}
}
