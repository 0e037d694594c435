// Package store keeps the event logs of studies and loses nothing that it has
// acknowledged. It holds the contract ([Store]) that every store fulfils, the
// codec of their records, and the errors they return. Stores themselves live
// below: store/memory, for tests and for searches that nobody needs again, and
// the durable ones. Package store/storetest is one suite that all of them pass.
//
// # What a store is
//
// A store maps a study to its log: event 1, event 2, … up to the head. Nothing
// in the log is ever changed; the only ways to write are to append after the
// head that the caller names (compare-and-append: whoever lost a race gets a
// [ConflictError] and has changed nothing) and to delete the whole study. The
// events of one commit become visible together or not at all. Beside its log
// a study may have one snapshot, a cache of whatever its owner folded from the
// log, which may vanish at any time.
//
// Studies have a name, which people choose, and a [StudyID], which the store
// chooses and never gives out again. A deleted study's name is free for a new
// study with a new id, so that a caller who still holds the old id gets a
// [NotFoundError] and never the wrong study. Everything but [Store.Lookup] and
// [Store.List] therefore goes by id.
//
// # What a store promises
//
//   - A call that returned nil happened, all of it, and (in a durable store)
//     survives the death of the process and the loss of power.
//   - A call that returned one of the errors in this package, or the error of
//     its context, happened not at all: with the one exception of
//     [ErrUnknownOutcome], which is what stands in place of any error after
//     which the store cannot tell.
//   - A record that was damaged on its way is refused ([CorruptError]), never
//     served. Each carries a CRC32C that also covers where it belongs, so that
//     every flip of a single bit, every burst of up to 32 bits and with
//     probability 1 − 2⁻³² anything else is noticed, records in the wrong
//     place included.
//   - What goes in is copied and what comes out is the caller's: nobody shares
//     memory with a store.
//
// # Records
//
// A record is one event in one format version: FORMAT.md draws it. Every
// version ever released stays readable; golden records under testdata keep
// that true. The schema (internal/recordpb) is the store's own and changes
// independently of the wire's. The codec carries exactly what is given, not a
// judgement on it, with four normalisations: times become UTC and lose their
// monotonic part, a NaN becomes the one canonical NaN, and empty slices and
// empty maps become nil.
//
// # Costs
//
// A trial of ten parameters (asked, one report, told) takes about 530 bytes in
// three records. A record costs a few microseconds to encode and one or two to
// decode: those that logs consist of are decoded without messages in between, for a
// fifth to a third of the allocations (33 to 7 for a suggestion). The 300,000 of a
// study of 100,000 trials make 140 MB of events. Decoding shares the names that it meets again if
// one [Decoder] is kept for the whole log, as [Store.Read] does. A decoded
// record has cost at most about fifty times its length in allocations, garbage
// included, whatever is in it.
package store
