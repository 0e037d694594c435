package figure

import (
	"io"
	"os"
	"path/filepath"
)

// WritePNGFiles writes every plot that has points as folder/name-plot.png. It creates the
// folder. It returns the files written.
func (l Plots) WritePNGFiles(name, folder string) ([]string, error) {
	return l.write(name, folder, ".png", (*Plot).WritePNG)
}

// WriteSVGFiles is [Plots.WritePNGFiles] for SVG.
func (l Plots) WriteSVGFiles(name, folder string) ([]string, error) {
	return l.write(name, folder, ".svg", (*Plot).WriteSVG)
}

func (l Plots) write(name, folder, ending string, draw func(*Plot, io.Writer) error) ([]string, error) {
	var files []string
	for _, p := range l {
		if p.Empty() {
			continue
		}
		file := filepath.Join(folder, name+"-"+p.Name+ending)
		if err := writeFile(file, func(out io.Writer) error { return draw(p, out) }); err != nil {
			return files, err
		}
		files = append(files, file)
	}
	return files, nil
}

// writeFile replaces a file once all is written.
func writeFile(path string, write func(io.Writer) error) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails if all went well
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	if err := f.Chmod(0o644); err != nil {
		f.Close()
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
