// Package racetest says which tests the race detector need not run, and how large tests are.
package racetest

import (
	"flag"
	"os"
	"runtime"
	"strconv"
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

// Waiting runs at least four parallel tests at once, for packages whose parallel tests wait for
// processes and servers more than they compute. A flag counts more. TestMain calls it first.
func Waiting() {
	if err := flag.Set("test.parallel", strconv.Itoa(max(4, runtime.GOMAXPROCS(0)))); err != nil {
		panic(err)
	}
}
