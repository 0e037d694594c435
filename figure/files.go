package figure

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// WriteCSVFiles writes every table as folder/name-table.csv, where name is that of the
// experiment. It creates the folder. If path ends in .csv it is the file for the only
// table. It returns the files written.
func (r *Result) WriteCSVFiles(name, path string) ([]string, error) {
	if strings.HasSuffix(path, ".csv") {
		if len(r.Tables) != 1 {
			return nil, fmt.Errorf("figure: %s has %d tables, too many for the one file %s; name a folder", name, len(r.Tables), path)
		}
		return []string{path}, writeFile(path, r.Tables[0].WriteCSV)
	}
	var files []string
	for _, t := range r.Tables {
		file := filepath.Join(path, name+"-"+t.Name+".csv")
		if err := writeFile(file, t.WriteCSV); err != nil {
			return files, err
		}
		files = append(files, file)
	}
	return files, nil
}

// WritePNGFiles writes every plot that has points as folder/name-plot.png. It creates the
// folder. It returns the files written.
func (r *Result) WritePNGFiles(name, folder string) ([]string, error) {
	return r.writePlots(name, folder, ".png", (*Plot).WritePNG)
}

// WriteSVGFiles is [Result.WritePNGFiles] for SVG.
func (r *Result) WriteSVGFiles(name, folder string) ([]string, error) {
	return r.writePlots(name, folder, ".svg", (*Plot).WriteSVG)
}

func (r *Result) writePlots(name, folder, ending string, write func(*Plot, io.Writer) error) ([]string, error) {
	var files []string
	for _, p := range r.Plots {
		if p.Empty() {
			continue
		}
		file := filepath.Join(folder, name+"-"+p.Name+ending)
		if err := writeFile(file, func(out io.Writer) error { return write(p, out) }); err != nil {
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
