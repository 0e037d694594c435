// Package planted names bugs that a build with the tag planted has on demand,
// so that the tests of internal/torture can show that they would notice. In
// every other build it is nothing: [Is] is a constant.
package planted

// Bug is a mistake that can be planted.
type Bug string

// The bugs, by where they are.
const (
	// store/bolt
	NoSync          Bug = "no-sync"           // nothing is synced
	CreateNoSync    Bug = "create-no-sync"    // a new file gets its name before it is on disk
	AnswerEarly     Bug = "answer-early"      // the committer answers before it commits
	SyncErrorFull   Bug = "sync-error-full"   // an error of syncing passes for a full disk
	NoFilePreflight Bug = "no-file-preflight" // the pages of a file are not checked when it is opened
	EngineReentered Bug = "engine-reentered"  // the engine is entered again after a fault
	MoveUnnoticed   Bug = "move-unnoticed"    // a file that is removed or renamed is served on

	// store
	ChecksumSkipped Bug = "checksum-skipped" // records are believed

	// tuner
	AckBeforeCommit   Bug = "ack-before-commit"   // calls are answered before their events are stored
	ReadUncommitted   Bug = "read-uncommitted"    // readers see what is not stored yet
	StaleAfterRefusal Bug = "stale-after-refusal" // after a refused commit the study stays as it would have been
	TwoCommitTell     Bug = "two-commit-tell"     // the events of one command are committed one by one
	LeaseByWallClock  Bug = "lease-by-wall-clock" // leases go by a clock that is set
	HeartbeatLost     Bug = "heartbeat-lost"      // a sign of life does not renew the lease
	ClockBack         Bug = "clock-back"          // a wall clock that goes back makes leases longer
	StaleDesk         Bug = "stale-desk"          // a deleted study stays in memory
	EpochOfNext       Bug = "epoch-of-next"       // a repeated ask learns the next holder's epoch
	CallerForgotten   Bug = "caller-forgotten"    // events do not name their caller
	MemoryUnchecked   Bug = "memory-unchecked"    // there is always room in memory

	// tuner/study
	RequestIgnored   Bug = "request-ignored"    // a request sent again has another effect
	EpochUnchecked   Bug = "epoch-unchecked"    // who lost the lease still tells the outcome
	ReportUnchecked  Bug = "report-unchecked"   // who lost the lease still reports
	NaNStored        Bug = "nan-stored"         // a trial completes with NaN
	QueueNotPopped   Bug = "queue-not-popped"   // what is handed out stays in the queue
	WorkerIndexStale Bug = "worker-index-stale" // what is over stays with its worker
	RetryTooOften    Bug = "retry-too-often"    // one retry more than allowed
	BudgetTooLarge   Bug = "budget-too-large"   // one trial more than allowed
	SecondTellEaten  Bug = "second-tell-eaten"  // another outcome is acknowledged, and dropped
	PauseIgnored     Bug = "pause-ignored"      // a paused study hands out trials
	ReportsCarried   Bug = "reports-carried"    // answers carry the reports of trials

	// tuner/server
	PermissionForgotten Bug = "permission-forgotten" // whoever reads may delete
	TokenLogged         Bug = "token-logged"         // a wrong token is in the log
	TokenStored         Bug = "token-stored"         // the caller's token is stored as the name of a worker
	NameUnchecked       Bug = "name-unchecked"       // a worker acts under the name of another
	AuditForgotten      Bug = "audit-forgotten"      // deletions leave no line
	HealthCounted       Bug = "health-counted"       // health watches count as calls at once
	HealthUncapped      Bug = "health-uncapped"      // health watches have no limit for each address
	StrangersUncapped   Bug = "strangers-uncapped"   // connections without a token have no limits
)
