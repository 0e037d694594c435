package store

// The limits of every store, all inclusive. A call beyond them returns a [LimitError].
// How many studies a store holds is a limit of its own. The limits of single events are
// in package study. MaxRecordBytes has room for the largest event, a model event.
const (
	MaxNameBytes    = 128      // a study's name
	MaxRecordBytes  = 20 << 20 // one encoded event
	MaxCommitBytes  = 64 << 20 // all encoded events of one commit
	MaxSummaryBytes = 80 << 10 // a summary's data, which has all attributes of a study
)
