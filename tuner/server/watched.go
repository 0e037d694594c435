package server

import (
	"os"
	"sync"
)

// watched is what some files say, read again when one of them changes.
type watched[T any] struct {
	paths  []string
	load   func() (T, error)
	failed func(error) // hears once of each state of the files that cannot be loaded

	mu     sync.Mutex
	stamps []os.FileInfo // of the files when they were last loaded; nil for one that was not there
	value  T
}

// newWatched loads the files for the first time.
func newWatched[T any](load func() (T, error), failed func(error), paths ...string) (*watched[T], error) {
	w := &watched[T]{paths: paths, load: load, failed: failed}
	w.stamps = w.look()
	var err error
	w.value, err = load()
	return w, err
}

// get returns what the files say now, or said when they last made sense.
func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	stamps := w.look()
	if same(stamps, w.stamps) {
		return w.value
	}
	w.stamps = stamps // from before loading: a change meanwhile is seen next time
	value, err := w.load()
	if err != nil {
		w.failed(err)
		return w.value
	}
	w.value = value
	return value
}

func (w *watched[T]) look() []os.FileInfo {
	stamps := make([]os.FileInfo, len(w.paths))
	for i, path := range w.paths {
		stamps[i], _ = os.Stat(path) // loading says why
	}
	return stamps
}

func same(a, b []os.FileInfo) bool {
	for i := range a {
		if a[i] == nil || b[i] == nil {
			if a[i] != b[i] {
				return false
			}
			continue
		}
		if !os.SameFile(a[i], b[i]) || a[i].Size() != b[i].Size() || !a[i].ModTime().Equal(b[i].ModTime()) || a[i].Mode() != b[i].Mode() {
			return false
		}
	}
	return true
}
