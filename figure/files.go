package figure

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/bkbtuner/bkb/internal/atomicfile"
)

// WritePNGFiles writes every plot that has points as folder/name-plot.png, with a number after
// a name that another plot has. It creates the folder. It returns the files written.
func (l Plots) WritePNGFiles(name, folder string) ([]string, error) {
	return l.write(name, folder, ".png", (*Plot).WritePNG)
}

// WriteSVGFiles is [Plots.WritePNGFiles] for SVG.
func (l Plots) WriteSVGFiles(name, folder string) ([]string, error) {
	return l.write(name, folder, ".svg", (*Plot).WriteSVG)
}

func (l Plots) write(name, folder, ending string, draw func(*Plot, io.Writer) error) (files []string, err error) {
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	taken := make(map[string]bool) // in lower case, as some systems compare names
	for _, p := range l {
		if p.Empty() {
			continue
		}
		text := name + "-" + p.Name
		for k := 2; taken[strings.ToLower(text)]; k++ {
			text = fmt.Sprintf("%s-%s~%d", name, p.Name, k)
		}
		taken[strings.ToLower(text)] = true
		file := atomicfile.Name(text) + ending
		if err := atomicfile.WriteIn(root, file, 0o644, func(out io.Writer) error { return draw(p, out) }); err != nil {
			return files, err
		}
		files = append(files, filepath.Join(folder, file))
	}
	return files, nil
}
