// Package study is the life of a study and its trials as a pure state machine:
// no I/O, no clock, no randomness, no goroutine. Time and chance enter as
// arguments; everything that happened is an [Event]; a [Study] is the fold of
// its events and nothing else.
//
// # Commands, events, state
//
//	Decide(now, Command) → Reply, []Event     reads the state, changes nothing
//	Apply(Event)                               changes the state, decides nothing
//
// A caller decides, commits the events to a store, and applies them. A restart
// applies the stored events in order and arrives at the same state, bit for
// bit, so the event log is the only truth. Decide on an unchanged state is
// repeatable; a refused command leaves no trace.
//
// # Trials
//
//	          ask                    tell
//	queued ─────────▶ running ─────────────────▶ completed
//	 │ ▲                 │                        failed(crash | cancelled | nan)
//	 │ │ expiry, while   │                        infeasible
//	 │ │ retries remain  │                        pruned
//	 │ └─────────────────┤
//	 │                   └──── expiry, none left ▶ failed(expired)
//	 └─ late tell by the last holder, or cancelled ▶ as from running
//
// A suggestion of the optimiser starts running at once; a configuration that a
// user enqueued waits as queued; a finished trial can be added from elsewhere.
// A running trial is held under a lease: a worker, an epoch that counts how
// often the trial was started, and a deadline. Who decides that a lease has run
// out is the caller, whose clock it is ([Expire]; [Study.Overdue] helps those
// who go by the stored deadline).
//
// Terminal is final. Telling the same outcome again is fine and changes
// nothing; another outcome is refused with the stored one in the error
// ([AlreadyToldError]). The one exception is failed(expired), which nobody
// told: the holder's late tell replaces it. A late tell of a trial that
// somebody else took over is kept beside the trial as a [LateResult] and never
// becomes its value; [View.Late] has them in the order of the log, for whoever
// learns from them.
//
// # Numbers that are not numbers
//
// An objective told as NaN makes the trial failed(nan). ±Inf on the bad side of
// an objective is stored and ranks last; on the good side it is refused. Any
// other metric must be finite. Standard errors are finite and not negative. An
// intermediate value of an objective may be NaN: it is kept and compares with
// nothing.
//
// # Requests
//
// Every command carries an optional request id, kept in the events of its
// effect. The same id with the same content has one effect and one answer,
// however often it is sent; with other content it is refused. Ids of asks,
// tells and whatever else made, handed out or ended a trial live as long as the
// study; those of reports, notes and switches at least [RequestRetention]. An
// ask whose suggestions were cut short by a crash goes on when it is sent again,
// up to the number of trials it was going to answer. An answer keeps the epochs
// it gave: whoever repeats an ask after the lease ran out learns nothing that
// would let it speak for the next holder.
//
// # Costs
//
// Decide and Apply are O(size of the command), except that an Ask of a named
// worker looks at that worker's running trials, reports that go back in steps
// index those of their trial, and Overdue scans the running trials.
package study
