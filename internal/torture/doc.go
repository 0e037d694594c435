// Package torture tests the promises of docs/promises.md. It holds only tests. They
// kill the real program under load, cut its power, fail its disk, and simulate the
// service with a clock of their own. They check recorded histories for linearizability,
// and plant bugs to show that the tests notice them.
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
//	          testing/synctest, so that a seed repeats a run; also three servers
//	          of package tuner/cluster over one store, which crash, freeze, are
//	          suspended, lose messages to each other and do not reach the store
//	Servers   three tuner serve on one PostgreSQL under 16 clients that send each try
//	          to another one; servers are killed, stopped and frozen, and the
//	          database is away or fails over to its standby
//	Linear    histories of many clients against one-at-a-time models (porcupine)
//
// A failed test leaves a folder with the seed, the journal of all calls, the file and
// the server's log. TestAgain checks such a folder again.
//
// # How much
//
// The everyday tests run a little of each harness, in about twenty seconds. The variables
// BKB_TORTURE_KILLS, _CUTS, _SEEDS, _SERVER_SEEDS, _OPS, _FAULTS and _SOAK of the environment set
// more, and those of TestServers begin with _SERVER (see the Makefile). The everyday tests use
// fixed seeds, so CI repeats its verdict on a commit. make torture draws new ones
// (BKB_TORTURE_SEED=new), and the seed that a failure prints repeats it. With BKB_TORTURE_MUST=1,
// a facility that this machine lacks is a failure.
package torture
