package storetest

import (
	"flag"
	"os"
	"strconv"
	"testing"

	"github.com/bkbtuner/bkb/store"
)

// Harness holds one empty store under test.
type Harness struct {
	Store store.Store
	// Reopen closes the store and opens the same data again. It is nil for a store that
	// does not keep its data when it is closed.
	Reopen func(t *testing.T) store.Store
}

// Histories makes the suite check n random histories in the rest of a test, and not 100, for
// stores on disk. It changes nothing if BKB_LONG is set, or -rapid.checks is.
func Histories(t testing.TB, n int) {
	t.Helper()
	checks := flag.Lookup("rapid.checks").Value
	const usual = "100"
	if os.Getenv("BKB_LONG") != "" || checks.String() != usual {
		return
	}
	if err := checks.Set(strconv.Itoa(n)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checks.Set(usual) })
}

// Run runs the whole suite. Each test gets its own store from open and closes it. If
// there is more to clean up, open registers it with t.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, *fixture)
	}{
		{"CreateFindsByNameAndID", testCreate},
		{"CreateRefusesTakenName", testCreateExists},
		{"CreateRefusesBadInput", testCreateInvalid},
		{"CreateRace", testCreateRace},
		{"DeleteIsFinal", testDelete},
		{"IDsAreNeverReused", testIDs},
		{"ListIsOrdered", testList},
		{"CommitAppends", testCommit},
		{"CommitConflictLeavesNothing", testConflict},
		{"CommitAllOrNothing", testAllOrNothing},
		{"CommitRefusesBadInput", testCommitInvalid},
		{"EveryKindRoundTrips", testKinds},
		{"LargeEvents", testLarge},
		{"ReadFromAnyPosition", testReadFrom},
		{"ReadAllowsAnythingInItsLoop", testReadReentrant},
		{"Unshared", testUnshared},
		{"OneWinnerPerPosition", testWinners},
		{"ReadersSeeWholeCommits", testReaders},
		{"CancelledContextHasNoEffect", testCancelled},
		{"CancelledMidwayIsOneOrTheOther", testCancelledMidway},
		{"Summaries", testSummaries},
		{"SavedSummaries", testSavedSummaries},
		{"Closed", testClosed},
		{"Survives", testSurvives},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, newFixture(t, open(t))) })
	}
	t.Run("Model", func(t *testing.T) { testModel(t, open) })
}
