package study

import "time"

// The limits of a study, all inclusive. The limits for names and values of parameters
// are in package space.
const (
	MaxNameBytes       = 128        // of a metric, worker, attribute key or request id
	MaxTextBytes       = 4 << 10    // of a message, finish detail or phase
	MaxOptionsBytes    = 64 << 10   // of a component's options
	MaxAttributesBytes = 64 << 10   // keys and values of one trial or of the study
	MaxMetrics         = 64         // of one outcome or one report
	MaxReplicates      = 10_000     // values of one metric
	MaxOutcomeBytes    = 900 << 10  // names and values of one outcome, so that a server takes each
	MaxReports         = 100_000    // of one trial in all epochs
	MaxReportBatch     = 1_000      // reports in one command
	MaxReportBytes     = 4 << 20    // names and values of the reports in one command
	MaxCount           = 1_000      // trials in one ask
	MaxTrials          = 10_000_000 // of one study
	MaxModelBytes      = 16 << 20   // of one model event
	MaxRetriesLimit    = 1_000
	DefaultMaxRetries  = 3 // new starts of a trial whose lease expired, where a face has a default
	MinLease           = time.Second
	MaxLease           = 366 * 24 * time.Hour
	DefaultLease       = time.Hour
)
