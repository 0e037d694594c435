// Package tuner is the service: studies that can be asked and told, over a store
// that remembers. [Service] is what there is to do; [Tuner] does it in the
// process.
//
// # How a study is worked on
//
// Each study that is in use has a desk with two goroutines. Every call decides
// on the desk's live state (package study), under a lock and in microseconds;
// the events it decided on are committed by the one goroutine, in order and in
// batches, and the call returns when they are stored. A call that only reads
// waits for what it saw to be stored as well. So calls behave as if they
// happened one at a time, nothing that was answered can be lost, and sixty-four
// clients share one fsync.
//
// Whatever makes a trial goes through the other goroutine, the proposer's, one
// ask at a time: a suggestion sees every earlier one as pending, is made for the
// number that it gets, and takes the time it needs without holding up tells,
// reports and heartbeats. If the proposer is late, fails, panics or talks
// nonsense, a random configuration stands in, marked as a fallback.
//
// A commit that the store refused having written nothing (a full disk, another
// writer) fails the calls that waited for it, and the desk reads its study anew.
// A commit of which the store cannot say what became of it ends the Tuner:
// every call fails with the code [Unknown] until the process starts again.
//
// A long-lived Tuner prepares the next suggestion, with the model that is due before
// it, after a tell and when the first worker calls of a study it has loaded: after a
// restart the first ask waits for what is left of that. It does so for one study at a
// time and begins while nobody asks, so that studies which are only looked at, and
// others than the one asked for, do not make an ask late. An ask never waits for more
// than one of the two of its own study, and what was prepared is what it would have
// got.
//
// # Leases
//
// A long-lived Tuner goes by its monotonic clock: leases found running when a
// study is loaded begin anew, a little spread; a heartbeat counts at once and is
// stored with the next commit; a process that was stopped for a while takes the
// pause off every lease. A command on a local file goes by the stored deadlines
// and the wall clock.
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
