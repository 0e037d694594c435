// Package datatest finds the real data for tests, which are not part of the project.
package datatest

import (
	"os"
	"path/filepath"
	"testing"
)

// Find returns the directory of real data. This is BKB_DATA, or shared/data beside the
// project, or "" if there is none. A data directory has a MANIFEST.md.
func Find() string {
	folder := os.Getenv("BKB_DATA")
	if folder == "" {
		folder = filepath.Join(project(), "..", "shared", "data")
	}
	if _, err := os.Stat(filepath.Join(folder, "MANIFEST.md")); err != nil {
		return ""
	}
	return folder
}

// project returns the outermost directory with a go.mod above the working directory, which
// for a test is that of its package. Module bench has one of its own.
func project() string {
	root := "."
	dir, err := os.Getwd()
	for ; err == nil && filepath.Dir(dir) != dir; dir = filepath.Dir(dir) {
		if _, missing := os.Stat(filepath.Join(dir, "go.mod")); missing == nil {
			root = dir
		}
	}
	return root
}

// Folder is Find for tests that need real data. It skips them if there are none.
func Folder(tb testing.TB) string {
	tb.Helper()
	folder := Find()
	if folder == "" {
		tb.Skip("no real data; set BKB_DATA to a data directory with a MANIFEST.md")
	}
	return folder
}
