// Package bolt is the default store: a [store.Store] in one file, on
// go.etcd.io/bbolt, that has synced what it has acknowledged.
//
// # The file
//
// docs/store.md draws it. A study's log is a bucket of its own, its records
// keyed by position; its head is kept twice, so that a log that lost its end is
// noticed. Everything this package writes carries a checksum that also covers
// where it belongs, except snapshot chunks, whose whole has one.
//
// # Writing
//
// All writes go through one committer. It takes one request, drains what else
// is waiting, applies each (whoever is refused has changed nothing, and spoils
// nothing), commits once, and answers everybody. The number of syncs therefore
// does not grow with the number of clients, and a single client waits for
// nobody. Encoding happens in the callers' goroutines.
//
// # When the disk fails
//
// bbolt syncs the data pages, then writes and syncs the meta page that makes
// them valid. An error of the last step leaves a transaction that everybody
// can see and that may or may not be on disk; after an error of any sync the
// kernel may have dropped what it could not write. So there are two kinds of
// errors:
//
//   - No room (quota, growing the file, writing a page), and the transaction is
//     not visible: nothing happened. [store.ErrFull]; reading goes on; so does
//     writing, as soon as there is room. The largest request is blamed first.
//   - Everything else: [store.ErrUnknownOutcome] to all who shared the
//     transaction, and to every call from then on; [Store.Failed] tells the
//     process to end. No sync is ever tried again.
//
// # When the file is harmed in use
//
// A page that cannot be read, or is not a page, is a fault within the engine,
// which may hold locks that it never releases. So the store begins and ends
// transactions one at a time, and enters the engine no more after a fault: every
// call returns [store.ErrDamaged] and [Store.Failed] tells the process to end.
// Only requests in the middle of a commit get [store.ErrUnknownOutcome].
//
// Once a second the store compares its file with what is at its path. A file that
// was removed, renamed or replaced stops it with [ErrMoved], a file that became
// shorter with [store.ErrDamaged].
//
// # Opening
//
// bbolt maps the file and trusts it: an empty file becomes an empty store, a
// truncated or damaged one ends the process with a signal or a panic in a
// goroutine of its own. So before bbolt sees the file, this package locks it,
// refuses what is empty, cut short, foreign, newer, or on a network file
// system, and walks all pages in use with a reader that checks every number.
// Then it compares names, studies and logs with each other. [FileError] says
// what is wrong and what to do.
//
// A store is created under another name, synced, and renamed; so are backups
// and compacted files. A crash leaves at most a hidden file whose name says
// what it was to be.
//
// # Costs
//
// Measured on two shared cores and a virtual disk whose sync takes 0.3 ms:
//
//   - 64 clients telling: 17,000 commits/s against 1,800/s with a transaction
//     each; on a busier disk 6,700/s against 310/s. The same with a million
//     trials stored. A commit alone is two syncs.
//   - A trial of ten parameters (asked, one report, told): 690 bytes.
//   - Opening a store with 100,000 trials: 70 ms. Reading them all from the
//     log: 1.0 s, in pages of at most 256 KB of which none is kept.
//   - Address space of [Options.MaxSize] is reserved, so that the file never
//     has to be mapped again, which would wait for readers.
//   - Deleting costs at once what 4,096 events cost; the rest is removed in the
//     background, in slices of a few milliseconds between which the others
//     write. The file never shrinks: see [Compact].
//   - A backup, and a long check, hold a read transaction: writers go on, but
//     the file grows meanwhile instead of using room again.
//   - A full disk costs each refused commit a scan of the pages in use (about
//     40 ms per 100 MB), which bbolt makes to find the free ones.
//   - The engine rewrites up to four neighbouring records that do not fit a
//     page together: an event of a megabyte is written up to four times.
package bolt
