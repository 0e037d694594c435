// Package bolt is the default store, a [store.Store] in one file on go.etcd.io/bbolt.
// It syncs every write to disk before it acknowledges it.
//
// # The file
//
// See docs/store.md for a drawing. The log of a study is a bucket of its own whose keys
// are positions. Its head is kept twice, so that a log without its end is detected.
// Everything that this package writes carries a checksum that also covers its place.
//
// # Writing
//
// All writes go through one committer. It takes one request and those that are waiting,
// applies each of them, commits once and answers all. A refused request changes nothing
// and does not affect the others. The number of syncs therefore does not grow with the
// number of clients, and a single client waits for no other. Encoding happens in the
// callers' goroutines.
//
// # When the disk fails
//
// bbolt syncs the data pages, then writes and syncs the meta page that makes them
// valid. If the last step fails, the transaction is visible to all readers but may or
// may not be on disk. After an error of any sync the kernel may have dropped what it
// could not write. That is why there are two kinds of errors:
//
//   - The disk or quota is full, which shows when the file grows or a page is written,
//     and the transaction is not visible. Nothing happened, and the error is
//     [store.ErrFull]. Reading continues, and writing continues as soon as there is
//     space. If one request is larger than all others together, it alone is refused.
//   - After every other error, all requests of the transaction and every later call
//     return [store.ErrUnknownOutcome]. [Store.Failed] tells the process to end. The
//     store never retries a sync.
//
// # When the file is damaged in use
//
// If a page cannot be read or is invalid, bbolt faults and may hold locks that it
// never releases. The store therefore begins and ends transactions one at a time and
// does not enter bbolt after a fault. Every call then returns [store.ErrDamaged],
// and [Store.Failed] tells the process to end. Only requests in the middle of a commit
// get [store.ErrUnknownOutcome].
//
// Once a second the store compares its file with the one at its path. A file that was
// removed, renamed or replaced stops it with [ErrMoved]. A file that became shorter
// stops it with [store.ErrDamaged].
//
// # Opening
//
// bbolt maps the file and trusts it. An empty file becomes an empty store, and a
// truncated or damaged one ends the process with a signal or with a panic in a
// goroutine of bbolt. This package therefore checks the file first. It locks it
// and refuses a file that is empty, truncated, foreign, newer, or on a network file
// system. It walks all pages in use with a reader that checks every number. After bbolt
// has opened the file, it compares names, studies and logs with each other. A
// [FileError] names the problem and the remedy.
//
// A store is created under another name, synced and renamed, as are backups and
// compacted files. A crash leaves at most a hidden file whose name says what it was
// meant to become.
//
// # Costs
//
// Measured on two shared cores and a virtual disk whose sync takes 0.3 ms:
//
//   - 64 clients that tell outcomes reach 17,000 commits/s, against 1,800/s with a
//     transaction each. On a busier disk these are 6,700/s and 310/s. They are the same
//     with a million trials stored. A commit alone takes two syncs.
//   - A trial of ten parameters (asked, one report, told) takes 690 bytes.
//   - Opening a store with 100,000 trials takes 70 ms. Reading them all from the log
//     takes 1.0 s, in pages of at most 256 KB of which none is kept.
//   - The store reserves [Options.MaxSize] of address space, so that it need not map
//     the file again, which would have to wait for readers.
//   - Deleting a study of 100,000 trials takes 0.1 s, in which other writes wait. The
//     file never shrinks, see [Compact].
//   - A backup or a long check holds a read transaction. Writing continues, but the
//     file grows meanwhile because it cannot reuse space.
//   - On a full disk each refused commit takes a scan of the pages in use, about 40 ms
//     per 100 MB, because bbolt looks for free ones.
//   - Bbolt rewrites up to four neighbouring records that do not fit a page
//     together, so an event of a megabyte is written up to four times.
package bolt
