// Package datatest finds the real data that tests are run on, which are no part of
// the project.
package datatest

import (
	"os"
	"path/filepath"
	"testing"
)

// Find returns the folder of real data: BKB_DATA, or shared/data beside the
// project; "" where there is none. A folder of data has a MANIFEST.md.
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

// project is the folder of go.mod above the working directory, which for a test is
// that of its package.
func project() string {
	root, err := os.Getwd()
	for ; err == nil && filepath.Dir(root) != root; root = filepath.Dir(root) {
		if _, missing := os.Stat(filepath.Join(root, "go.mod")); missing == nil {
			return root
		}
	}
	return "."
}

// Folder is Find for tests that are nothing without real data: it skips them.
func Folder(tb testing.TB) string {
	tb.Helper()
	folder := Find()
	if folder == "" {
		tb.Skip("no real data: neither $BKB_DATA nor ../shared/data beside the project has a MANIFEST.md; set BKB_DATA to the folder of data")
	}
	return folder
}
