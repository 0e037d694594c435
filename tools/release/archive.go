package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// file is an entry of an archive.
type file struct {
	name       string // below the directory of the archive, with slashes
	data       []byte
	executable bool
}

func (f file) mode() int64 {
	if f.executable {
		return 0o755
	}
	return 0o644
}

// sorted returns the files in the order of an archive.
func sorted(files []file) ([]file, error) {
	files = slices.Clone(files)
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	for i := 1; i < len(files); i++ {
		if files[i].name == files[i-1].name {
			return nil, fmt.Errorf("two files are named %s", files[i].name)
		}
	}
	return files, nil
}

// tarball writes files below a directory as .tar.gz.
func tarball(w io.Writer, dir string, mtime time.Time, files []file) error {
	files, err := sorted(files)
	if err != nil {
		return err
	}
	z, err := gzip.NewWriterLevel(w, gzip.BestCompression)
	if err != nil {
		return err
	}
	t := tar.NewWriter(z)
	for _, f := range files {
		h := &tar.Header{Typeflag: tar.TypeReg, Name: dir + "/" + f.name, Size: int64(len(f.data)), Mode: f.mode(), ModTime: mtime, Format: tar.FormatUSTAR}
		if len(h.Name) > 100 {
			h.Format = tar.FormatPAX
		}
		if err := t.WriteHeader(h); err != nil {
			return err
		}
		if _, err := t.Write(f.data); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}

// zipped writes files below a directory as .zip.
func zipped(w io.Writer, dir string, mtime time.Time, files []file) error {
	files, err := sorted(files)
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: dir + "/" + f.name, Method: zip.Deflate, Modified: mtime}
		h.SetMode(0o644)
		if f.executable {
			h.SetMode(0o755)
		}
		entry, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := entry.Write(f.data); err != nil {
			return err
		}
	}
	return z.Close()
}
