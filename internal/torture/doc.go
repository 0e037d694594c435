// Package torture proves what docs/promises.md promises. It holds tests only:
// they kill the real program under load, cut its power, fail its disk, simulate
// the service under a clock of their own, check recorded histories for
// linearizability, and plant bugs to see whether all that would notice.
//
// # Harnesses
//
//	Kill      tuner serve under 16 gRPC clients, kill -9 at a random moment,
//	          everything acknowledged is in the file, whole and once
//	Power     the writes of tuner serve are recorded (strace); at a random moment
//	          the disk keeps what was synced and a random part of the rest, down
//	          to single sectors of 512 bytes
//	Faults    errors and delays at the N-th write, sync and truncation; full disks
//	Harmed    the file of a server under load is cut, removed, renamed, replaced
//	Simulate  the service of package tuner over a store in memory that loses what
//	          was not synced, refuses, and forgets whether it wrote; clients lose
//	          answers and send again; clocks jump; all in one bubble of
//	          testing/synctest, so that a seed repeats a run
//	Linear    histories of many clients against one-at-a-time models (porcupine)
//
// Whatever fails leaves a folder with the seed, the journal of all calls, the
// file and the server's log; TestAgain checks such a folder again.
//
// # How much
//
// The everyday tests do a little of everything in some twenty seconds. The
// environment sets more, see the Makefile: BKB_TORTURE_KILLS, _CUTS, _SEEDS,
// _OPS, _FAULTS, _SOAK. Seeds are the same each time, so that what CI says of a
// commit stays so; make torture takes new ones (BKB_TORTURE_SEED=new), and the
// number that a failure prints repeats it. With BKB_TORTURE_MUST=1 a facility that
// this machine lacks is a failure.
package torture
