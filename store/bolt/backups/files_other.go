//go:build !unix || solaris || aix

package backups

import (
	"os"
	"time"
)

// hold does nothing here.
func hold(*os.File) error { return nil }

// abandoned goes by the time of the last write.
func abandoned(path string) bool {
	info, err := os.Stat(path)
	return err == nil && time.Since(info.ModTime()) > 24*time.Hour
}
