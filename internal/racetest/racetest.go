// Package racetest marks tests that the race detector need not run.
package racetest

import "testing"

// Alone is for long tests in which one goroutine computes, or whose helpers are used in the
// same way by smaller tests of the same package. The flag -short, which make race uses,
// skips them.
func Alone(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("one goroutine after another, nothing for the race detector: left out by -short; go test runs it")
	}
}
