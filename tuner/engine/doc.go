// Package engine is the service in the process. An [Engine] implements [tuner.Service]
// over a store.
//
// # How a call works
//
// Each study in use has a desk with a log, a proposer and a clock.
//
//	Ask, Enqueue, Add ──► proposer ──► clock ──► log ──► store
//	Tell, Report, Heartbeat, reads ────────────► log ──► store
//	every second (long-lived) ───────► clock ──► log ──► store
//
// The log holds the live study (package study), which is ahead of the store. It decides
// every call on the live study under one lock, in microseconds. Its goroutine commits
// the decided events in order and in batches. A call returns when its events are
// stored. A read also waits until everything it saw is stored. Calls therefore behave
// as if they happened one at a time, every answer is on disk, and 64 clients share one
// fsync.
//
// The proposer's goroutine runs the commands that make trials, one at a time. A
// suggestion sees every earlier one as pending, and its trial number is fixed in
// advance. The goroutine does not hold the lock, so tells, reports and heartbeats do
// not wait for it. If the study's proposer (package propose) is late, fails, panics or
// makes an invalid suggestion, the ask gets a random configuration, marked as a
// fallback.
//
// If the store refuses a commit without writing anything, for example because the disk
// is full, the waiting calls fail and the log reads its study again. If the store does
// not know whether it wrote, the engine ends. Every call then fails with the code
// [tuner.Unknown] until the process is restarted.
//
// A long-lived engine prepares the next suggestion in the background, with the model
// that is due before it. It does so after each tell, and when a worker first calls for
// a study just loaded. The first ask after a restart waits for the rest of that work.
// Only one study is prepared at a time, and only while no ask is running, so
// preparation for one study does not delay the asks of another. Preparation does not
// change what an ask gets.
//
// # Locks
//
// The log's lock guards the live study, the state kept beside it, the queue of batches,
// and those fields of the proposer and the clock whose comments say so. It is not held
// while the store or the proposer works. The engine's lock guards the table of desks and
// is never taken under a log's lock. Suggestions, preparations and consultations (Best,
// Diagnose and the forecast for a pruner) take turns with the token of the study's
// suggester.
//
// # Leases
//
// A long-lived engine measures leases by its monotonic clock. When it loads a study, the
// leases of running trials begin anew, spread a little. A heartbeat takes effect at
// once and is stored with the next commit. If the process was stopped for a while,
// every lease is extended by the pause. A command on a local file uses the stored
// deadlines and the wall clock.
//
// # Costs
//
// A trial in memory takes 1.2 kB with ten parameters and 1.1 kB with eight, including
// its request ids. These are heap sizes after a collection, for 10⁴ and 10⁵ trials read
// from a file. Loading takes about 10 µs a trial. BenchmarkRestart measured the
// anonymous memory of a server with a study of 10⁵ trials of eight parameters, in three
// starts beside other work. It was 216 to 222 MB after a restart and the first ask of
// BKB, at most 240 MB in the seconds after it, and 207 MB after 300 asks and tells.
// Best costs O(trials) for one objective.
package engine
