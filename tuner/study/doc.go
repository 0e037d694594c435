// Package study implements the life of a study and its trials as a pure state machine. It has no
// I/O, no clock, no random numbers and no goroutines. Times and random seeds are arguments. Every
// change is an [Event], and the state of a [Study] depends only on its events.
//
// # Commands, events, state
//
//	Decide(now, Command) → Reply, []Event     reads the state, changes nothing
//	Apply(Event)                               changes the state, decides nothing
//
// A caller decides and applies, and answers once a store has the events. A restart applies the stored
// events in order and arrives at the same state, bit for bit, so the event log is the only record
// of a study. Decide on an unchanged state can be repeated. A refused command has no effect.
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
// A suggestion of the proposer starts running at once. A configuration that a user enqueued waits
// as queued. A finished trial can be added from elsewhere. A running trial is held under a lease.
// A lease has a worker, an epoch that counts how often the trial was started, and a deadline. The
// caller decides by its own clock when a lease has expired, and sends [Expire]. A caller that
// uses the stored deadline can call [Study.Overdue].
//
// A terminal state is final. Telling the same outcome again has no effect. Another outcome is
// refused with an [AlreadyToldError], which holds the stored one. The one exception is
// failed(expired), which comes from the study itself, so a late tell of the last holder replaces
// it. If another worker took the trial over, a late tell of the earlier one is kept as a
// [LateResult] of the trial and never becomes its outcome. [View.Late] lists late results in the
// order of the log, for models that learn from them.
//
// # NaN and infinity
//
// If an objective is told as NaN, the trial becomes failed(nan). For ±Inf the direction of the
// objective decides. The infinity on the bad side is stored and ranks last, and the one on the
// good side is refused. Any other metric must be finite. Standard errors are finite and not
// negative. An intermediate value of an objective may be NaN, which is stored and never compared.
//
// # Requests
//
// Most commands have an optional request id, which is stored in their events. The same
// id with the same content has one effect and one answer, however often it is sent. With
// other content it is refused, and so it is from another caller, see
// [Study.CheckSender]. Ids of commands that made, handed out or ended a trial are kept as
// long as the study, and others for at least [RequestRetention]. If a crash interrupted an
// ask, sending it again makes the rest of its trials. An answer keeps its epochs, so that a
// client that repeats an ask cannot act for the next holder of a lease.
//
// # Costs
//
// Decide and Apply are O(size of the command), with three exceptions. An Ask of a named
// worker visits that worker's running trials. Reports whose steps decrease index the
// reports of their trial. Overdue visits all running trials.
package study
