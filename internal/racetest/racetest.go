// Package racetest says which tests the race detector need not run, and how large tests are.
package racetest

import (
	"os"
	"testing"
)

// Alone is for long tests in which one goroutine computes, or whose helpers are used in the same
// way by smaller tests of the same package. The flag -short, which make race uses, skips them.
func Alone(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		tb.Skip("one goroutine after another, nothing for the race detector: left out by -short; go test runs it")
	}
}

// Size is a number of repetitions: fewer every day than with BKB_LONG, which make test-long sets.
func Size(everyday, long int) int {
	if os.Getenv("BKB_LONG") != "" {
		return long
	}
	return everyday
}
