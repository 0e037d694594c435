package server

import (
	"os"
	"slices"
	"sync"
)

// watched holds a value loaded from files, and loads it again when one of them changes.
type watched[T any] struct {
	paths  []string
	load   func() (T, error)
	failed func(error) // called once for each state of the files that cannot be loaded

	mu     sync.Mutex
	stamps []os.FileInfo // when the files were last loaded; nil for a missing file
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

// get returns the value of the files as they are, or the last valid one.
func (w *watched[T]) get() T {
	w.mu.Lock()
	defer w.mu.Unlock()
	stamps := w.look()
	if same(stamps, w.stamps) {
		return w.value
	}
	w.stamps = stamps // from before the load, so that the next call sees a change during it
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
		stamps[i], _ = os.Stat(path) // load returns the error
	}
	return stamps
}

func same(a, b []os.FileInfo) bool {
	return slices.EqualFunc(a, b, func(a, b os.FileInfo) bool {
		if a == nil || b == nil {
			return a == b
		}
		return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode()
	})
}
