//go:build unix && !solaris && !aix

package server_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/bkbtuner/bkb/tuner/server"
)

// TestOneListensOnASocket checks that of several servers that begin at once one listens,
// over the socket that a killed server left. The others are told that the address is in
// use.
func TestOneListensOnASocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for round := range 20 {
		left, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		left.(*net.UnixListener).SetUnlinkOnClose(false)
		left.Close()
		var mu sync.Mutex
		var got []*server.Opened
		var group sync.WaitGroup
		for range 8 {
			group.Go(func() {
				l, err := server.Listen(server.Options{Address: "unix:" + path})
				if err != nil && !errors.Is(err, server.ErrAddressInUse) {
					t.Error(err)
				}
				mu.Lock()
				if err == nil {
					got = append(got, l)
				}
				mu.Unlock()
			})
		}
		group.Wait()
		if len(got) != 1 {
			t.Errorf("round %d: %d servers listen", round, len(got))
		}
		for _, l := range got {
			l.Close()
		}
	}
}

// TestLockedFolder checks that a lock on the folder of a socket delays a server for a
// while only.
func TestLockedFolder(t *testing.T) {
	t.Parallel() // it waits more than it computes
	dir := t.TempDir()
	f, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	begun := time.Now()
	_, err = server.Listen(server.Options{Address: "unix:" + filepath.Join(dir, "s")})
	if !errors.Is(err, server.ErrAddressInUse) || time.Since(begun) > time.Minute {
		t.Errorf("after %s: %v", time.Since(begun), err)
	}
}
