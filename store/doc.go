// Package store keeps the event logs of studies and loses nothing that it has acknowledged. It
// defines the contract of every store ([Store]), the codec of their records and the errors that
// they return. Package store/bolt is the store in a file and package store/postgres the one in a
// database. Package store/memory is for tests and for searches whose results need not be kept.
// Package store/storetest is the suite of tests that every store passes.
//
// # Terms
//
// A store maps a study to its log of events 1, 2, … up to the head. An event in the log
// never changes. There are two ways to write. You can append after the head that you
// name, or delete the whole study. An append whose head is no longer the current one
// returns a [ConflictError] and changes nothing. The events of one commit become
// visible together or not at all. A study may also have a [Summary] for lists, which a commit stores together with its
// events. It counts only while it is of the head, so it never differs from the log.
//
// Studies have a name, which people choose, and a [StudyID], which the store chooses and never
// uses again.
//
// # What a store promises
//
//   - A call that returned nil took full effect. In a durable store the effect survives
//     the death of the process and the loss of power.
//   - A call that returned another error of this package, or the error of its context,
//     had no effect. The one exception is [ErrUnknownOutcome], which a store returns in
//     place of any error after which it cannot tell.
//   - A damaged record is never returned. Reading it returns a [CorruptError]. Each
//     record carries a CRC32C that also covers its place. It detects every flip of a
//     single bit and every burst of up to 32 bits. It detects any other damage,
//     including a record in the wrong place, with probability 1 − 2⁻³².
//   - Arguments are copied, and results belong to the caller. A store shares no memory
//     with its callers.
//
// # Records
//
// A record is one event in one format version, see FORMAT.md. The schema (internal/recordpb)
// belongs to the store and changes independently of the protocol. The codec does not judge
// events. It stores what it is given, with four normalisations. Times become UTC and lose their
// monotonic part, every NaN becomes the one canonical NaN, and empty slices and empty maps become
// nil.
//
// # Costs
//
// A trial of ten parameters (asked, one report, told) takes about 530 bytes in three
// records. A record costs a few microseconds to encode or to decode. One [Decoder] kept for
// a whole log, as in [Store.Read], keeps each name in memory once. Decoding any record
// allocates at most about fifty times its length, garbage included.
package store
