//go:build !unix

package bolt

import "errors"

// limitFiles cannot limit files here.
func limitFiles(uint64) error { return errors.ErrUnsupported }

// makePipe cannot make a named pipe here.
func makePipe(string) error { return errors.ErrUnsupported }
