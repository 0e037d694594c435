package experiment

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/bkbtuner/bkb/learners/dataset"
)

// DataError reports real data that are missing.
type DataError struct {
	Name   string // of the file, within the folder
	Folder string // "" if no directory was given
}

func (e *DataError) Error() string {
	if e.Folder == "" {
		return fmt.Sprintf("no data directory was given, and %s is needed; name the directory with --data or BKB_DATA", e.Name)
	}
	return fmt.Sprintf("there is no %s in the data directory %s; name another with --data or BKB_DATA", e.Name, e.Folder)
}

// File returns the path of a file in the data directory. The error is a [*DataError].
func (v *Env) File(name string) (string, error) {
	if v.Data == "" {
		return "", &DataError{name, ""}
	}
	path := filepath.Join(v.Data, filepath.FromSlash(name))
	if _, err := os.Stat(path); err != nil {
		return "", &DataError{name, v.Data}
	}
	return path, nil
}

// Table opens a file in the data directory. A relative o.TargetPath is in that directory
// too. The errors are [*DataError] and those of [dataset.Open].
func (v *Env) Table(ctx context.Context, o dataset.Options, name string) (*dataset.Table, error) {
	path, err := v.File(name)
	if err == nil && o.TargetPath != "" {
		o.TargetPath, err = v.File(o.TargetPath)
	}
	if err != nil {
		return nil, err
	}
	return dataset.Open(ctx, o, path)
}
