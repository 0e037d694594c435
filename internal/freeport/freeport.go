// Package freeport chooses ports for servers of tests whose addresses others must know
// before they listen, or that stop and come back.
package freeport

import (
	"fmt"
	"math/rand/v2"
	"net"
	"testing"
)

// Ports from first on, below those that systems choose themselves for listeners and for the
// callers' ends of connections. Among those, any process can take a port between its choice
// and its use, and a call to a port that nothing listens on can even reach itself.
const (
	first = 16384
	count = 32768 - first
)

// Get returns a port of this machine that nothing listens on.
func Get() (int, error) {
	var err error
	for range 100 {
		var l net.Listener
		port := first + rand.IntN(count)
		if l, err = net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			return port, l.Close()
		}
	}
	return 0, fmt.Errorf("none of 100 ports from %d on is free: %w", first, err)
}

// Address is an address of this machine that nothing listens on.
func Address(tb testing.TB) string {
	tb.Helper()
	port, err := Get()
	if err != nil {
		tb.Fatal(err)
	}
	return fmt.Sprint("127.0.0.1:", port)
}
