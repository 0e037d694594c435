package store

// The limits of what a store takes in; all are inclusive. Beyond them a call
// is refused with a [LimitError]. What one event may hold is the business of
// package study; MaxRecordBytes has room for the largest, a model event.
const (
	MaxNameBytes     = 128       // a study's name
	MaxStudies       = 100_000   // alive at once in one store
	MaxRecordBytes   = 20 << 20  // one encoded event
	MaxCommitBytes   = 64 << 20  // all encoded events of one commit
	MaxSnapshotBytes = 256 << 20 // a snapshot's data
)
