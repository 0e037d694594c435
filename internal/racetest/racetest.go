// Package racetest says which tests are nothing for the race detector.
package racetest

import "testing"

// Alone is for tests that take long and in which one goroutine computes, or one
// whose helpers smaller tests of the same package employ in the same way. -short,
// with which make race runs, leaves them out.
func Alone(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("one goroutine after another, nothing for the race detector: left out by -short; go test runs it")
	}
}
