// Package tuner is the service: studies that are asked for configurations and told
// results, over a store. [Service] is the interface, and [Tuner] implements it in the
// process.
//
// # How a call works
//
// Each study in use has a desk with a log, a proposer and a clock:
//
//	Ask, Enqueue, Add ──► proposer ──► clock ──► log ──► store
//	Tell, Report, Heartbeat, reads ────────────► log ──► store
//	every second (long-lived) ───────► clock ──► log ──► store
//
// The log holds the live study (package study), which is ahead of the store. Every call
// decides on it under one lock, in microseconds. The log's goroutine commits the decided
// events in order and in batches, and the call returns when they are stored. A call that
// only reads also waits until what it saw is stored. So calls behave as if they happened
// one at a time, every answer is on disk, and 64 clients share one fsync.
//
// The proposer's goroutine runs every command that makes a trial, one at a time. A
// suggestion sees every earlier one as pending and is made for the number that it gets.
// It does not hold the lock, so tells, reports and heartbeats do not wait for it. If the
// study's proposer (package propose) is late, fails, panics or makes an invalid
// suggestion, the ask gets a random configuration, marked as a fallback.
//
// If the store refuses a commit and has written nothing (a full disk, another writer),
// the calls that waited for it fail and the log reads its study again. If the store does
// not know the outcome, the Tuner ends: every call fails with the code [Unknown] until
// the process starts again.
//
// A long-lived Tuner prepares the next suggestion, with the model that is due before it,
// after a tell and when the first worker calls of a study it has loaded. After a restart
// the first ask waits for the rest of that work. One study is prepared at a time, begun
// while no ask is at work, so that preparing for other studies does not delay an ask. An
// ask waits at most for the model or for the suggestion of its own study, and gets what
// it would have got without preparation.
//
// # Locks
//
// The log's lock guards the live study and everything kept beside it, the queue of
// batches, and the few fields of the proposer and the clock that say so. It is not held
// while the store or the proposer is at work. The Tuner's lock guards the table of desks
// and is never taken under a log's lock. A suggestion, a consultation (Best, Diagnose, a
// pruner's forecast) and a preparation take the token of the study's suggester in turn.
//
// # Leases
//
// A long-lived Tuner uses its monotonic clock. Leases found running when a study is
// loaded begin anew, a little spread. A heartbeat counts at once and is stored with the
// next commit. A process that was stopped for a while adds the pause to every lease. A
// command on a local file uses the stored deadlines and the wall clock.
//
// # Costs
//
// A study in memory takes 1.2 kB a trial of ten parameters, 1.1 kB of eight, with its
// request ids (heap after a collection, of 10⁴ and of 10⁵ trials read from a file);
// loading one takes about 10 µs a trial. A server with a study of 10⁵ trials of eight
// parameters had 216 to 222 MB of anonymous memory after a restart and the first ask of
// BKB, 240 MB at most in the seconds after it, and 207 MB after 300 asks and tells (three
// starts each, beside other work; BenchmarkRestart). Best costs O(trials) for one
// objective.
package tuner
