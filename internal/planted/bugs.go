// Package planted names bugs that a build with the tag planted can switch on. With them
// internal/torture shows that its tests would detect such bugs. In every other build
// [Is] is constantly false.
package planted

// Bug is a bug that can be switched on.
type Bug string

// The bugs, by the package that has them.
const (
	// store/bolt
	NoSync          Bug = "no-sync"           // nothing is synced
	CreateNoSync    Bug = "create-no-sync"    // a new file gets its name before it is on disk
	AnswerEarly     Bug = "answer-early"      // the committer answers before it commits
	SyncErrorFull   Bug = "sync-error-full"   // an error of syncing counts as a full disk
	NoFilePreflight Bug = "no-file-preflight" // the pages of a file are not checked when it is opened
	EngineReentered Bug = "engine-reentered"  // the engine is entered again after a fault
	MoveUnnoticed   Bug = "move-unnoticed"    // a file that was removed or renamed stays in use

	// store/postgres
	PgLostIsRefused Bug = "pg-lost-is-refused" // a lost connection counts as a refusal
	PgNoCompare     Bug = "pg-no-compare"      // a write whose answer was lost is not looked for

	// store/memory
	FenceMissing Bug = "fence-missing" // a server writes to a study that it lost
	ClaimByRead  Bug = "claim-by-read" // a server is not buried before its studies are claimed

	// store/lease
	LeaseByMonotonic Bug = "lease-by-monotonic" // a suspended machine does not notice that its lease ended

	// store
	ChecksumSkipped Bug = "checksum-skipped" // checksums of records are not checked

	// tuner
	AckBeforeCommit   Bug = "ack-before-commit"   // calls are answered before their events are stored
	ReadUncommitted   Bug = "read-uncommitted"    // readers see data that are not stored yet
	StaleAfterRefusal Bug = "stale-after-refusal" // after a refused commit the study keeps the change
	TwoCommitTell     Bug = "two-commit-tell"     // the events of one command are committed one by one
	LeaseByWallClock  Bug = "lease-by-wall-clock" // leases use the wall clock, which can be set
	HeartbeatLost     Bug = "heartbeat-lost"      // a heartbeat does not renew the lease
	ClockBack         Bug = "clock-back"          // a wall clock that goes back extends leases
	StaleDesk         Bug = "stale-desk"          // a deleted study stays in memory
	EpochOfNext       Bug = "epoch-of-next"       // a repeated ask returns the next holder's epoch
	CallerForgotten   Bug = "caller-forgotten"    // events do not name their caller
	MemoryUnchecked   Bug = "memory-unchecked"    // the limit of memory is not checked

	// tuner/study
	RequestIgnored   Bug = "request-ignored"    // a repeated request has a second effect
	EpochUnchecked   Bug = "epoch-unchecked"    // a worker that lost its lease can tell the outcome
	ReportUnchecked  Bug = "report-unchecked"   // a worker that lost its lease can report
	NaNStored        Bug = "nan-stored"         // a trial completes with NaN
	QueueNotPopped   Bug = "queue-not-popped"   // trials that are handed out stay in the queue
	WorkerIndexStale Bug = "worker-index-stale" // trials that are over stay with their worker
	RetryTooOften    Bug = "retry-too-often"    // there is one retry more than allowed
	BudgetTooLarge   Bug = "budget-too-large"   // there is one trial more than allowed
	SecondTellEaten  Bug = "second-tell-eaten"  // a second, different outcome is acknowledged and dropped
	PauseIgnored     Bug = "pause-ignored"      // a paused study hands out trials
	ReportsCarried   Bug = "reports-carried"    // answers carry the reports of trials

	// tuner/cluster
	AnswerAfterLease Bug = "answer-after-lease" // a server answers although its lease is over
	StalePlace       Bug = "stale-place"        // calls go to a server that does not have the study any more

	// tuner/server
	PermissionForgotten Bug = "permission-forgotten" // a token for reading can delete
	TokenLogged         Bug = "token-logged"         // a wrong token is in the log
	TokenStored         Bug = "token-stored"         // the token is stored as the worker's name
	NameUnchecked       Bug = "name-unchecked"       // a worker can use the name of another
	AuditForgotten      Bug = "audit-forgotten"      // deletions are not logged
	HealthCounted       Bug = "health-counted"       // health watches count as calls at once
	HealthUncapped      Bug = "health-uncapped"      // health watches have no limit for each address
	StrangersUncapped   Bug = "strangers-uncapped"   // connections without a token have no limits
)
