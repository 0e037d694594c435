package learners

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/bkbtuner/bkb/learners"
)

// checkModelOut refuses a file for a model that cannot be written, or that would replace
// an input, a device, or a file that is no model. It runs before any work.
func checkModelOut(path string, inputs ...string) error {
	folder := filepath.Dir(path)
	if !cli.IsDir(folder) {
		return cli.Exit(cli.ExitNotFound, fmt.Errorf("there is no directory %s for the model %s; make it first", folder, filepath.Base(path)))
	}
	if err := checkReplaceable(path, inputs); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(folder, filepath.Base(path)+".*.tmp")
	if err != nil {
		err = fmt.Errorf("--out %s cannot be written: %w", path, err)
		if errors.Is(err, fs.ErrPermission) {
			return cli.Exit(cli.ExitDenied, err)
		}
		return err
	}
	return errors.Join(tmp.Close(), os.Remove(tmp.Name()))
}

// checkReplaceable refuses a file that exists and is not a model, or empty.
func checkReplaceable(path string, inputs []string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	for _, in := range inputs {
		if other, err := os.Stat(in); err == nil && os.SameFile(info, other) {
			return cli.Usagef("--out %s is the file of the data, which would be lost; name another file", path)
		}
	}
	switch {
	case info.IsDir():
		return cli.Usagef("--out %s is a directory; name a file", path)
	case !info.Mode().IsRegular():
		return cli.Usagef("--out %s is no regular file; name another", path)
	case info.Size() == 0:
		return nil
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(learners.Magic))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != learners.Magic {
		return cli.Usagef("--out %s exists and is no model; remove it, or name another file", path)
	}
	return nil
}
