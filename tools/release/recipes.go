package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// recipes is what the templates of deploy/package/recipes know.
type recipes struct {
	Tag, Version, Date, Tags string
	Image                    string            // digest
	sums                     map[string]string // of the files of the release, by name
}

// Folder is the name of an archive without its ending, and the folder in it.
func (r recipes) Folder(system string) string { return "tuner-" + r.Tag + "-" + system }

func (r recipes) archive(system string) (string, error) {
	for _, ending := range []string{".tar.gz", ".zip"} {
		if name := r.Folder(system) + ending; r.sums[name] != "" {
			return name, nil
		}
	}
	return "", fmt.Errorf("the release has no archive for %s", system)
}

// URL is the address of an archive.
func (r recipes) URL(system string) (string, error) {
	name, err := r.archive(system)
	return "https://" + product + "/releases/download/" + r.Tag + "/" + name, err
}

// Sum is the checksum of an archive, and SUM the same with capital letters.
func (r recipes) Sum(system string) (string, error) {
	name, err := r.archive(system)
	return r.sums[name], err
}

func (r recipes) SUM(system string) (string, error) {
	sum, err := r.Sum(system)
	return strings.ToUpper(sum), err
}

// write fills in the templates of a folder and writes them to out.
func (r recipes) write(from, out string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		t, err := template.ParseFiles(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(out, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		var b strings.Builder
		if err := t.Execute(&b, r); err != nil {
			return err
		}
		return os.WriteFile(to, []byte(b.String()), 0o644)
	})
}
