package server

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/bkbtuner/bkb/cmd/tuner/cli"
	"github.com/spf13/cobra"
)

func newInstall() *cobra.Command {
	return &cobra.Command{
		Use:   "install PATH",
		Short: "Copy this program to another place",
		Long: `Install copies this program to a file, or into a folder under its own name. It replaces a
file at once, so that no other process sees half of it.

It is for images without a shell. An init container copies the program into a volume, and
another container runs it there (tuner workers kubernetes).`,
		Example: "  tuner workers install /bkb/tuner",
		Args:    cli.Exactly(1),
		RunE: func(_ *cobra.Command, args []string) error {
			program, err := os.Executable()
			if err != nil {
				return err
			}
			path := args[0]
			if cli.IsDir(path) {
				path = filepath.Join(path, filepath.Base(program))
			}
			if folder := filepath.Dir(path); !cli.IsDir(folder) {
				return cli.Exit(cli.ExitNotFound, fmt.Errorf("there is no directory %s for the program; make it first", folder))
			}
			return copyProgram(program, path)
		},
	}
}

// copyProgram copies an executable file. An error leaves what was there.
func copyProgram(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.CreateTemp(filepath.Dir(to), filepath.Base(to)+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(out.Name()))
		}
	}()
	if _, err = io.Copy(out, in); err == nil {
		err = out.Chmod(0o755)
	}
	if err = errors.Join(err, out.Close()); err == nil {
		err = os.Rename(out.Name(), to)
	}
	return err
}
