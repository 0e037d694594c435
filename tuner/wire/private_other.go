//go:build !unix

package wire

import "os"

// CheckPrivate checks nothing, because this system has no such file modes.
func CheckPrivate(string, os.FileInfo) error { return nil }

// CheckKey checks nothing either.
func CheckKey(string) error { return nil }
