package model

// Options are how a study is modelled. Their names in parentheses are those in the
// JSON of the proposer "bkb".
type Options struct {
	// Start ("start", 1 to 10000) is the number of results before there is a
	// model; enqueued and added trials count. The default is d + 2 for d coordinates,
	// at least 4 and at most 16.
	Start int
	// Cap ("cap", 16 to 2048, default 256) is the most inducing points. Where trials
	// report, each takes up to five of them while there is room for all.
	Cap int
	// Sampler ("sampler": "auto", the default, "rls", "bless" or "uniform") draws the
	// inducing points where there are more different configurations than Cap. RLS is
	// thesis Algorithm 5, which looks at all results; BLESS, Algorithm 3, looks at few,
	// and is what auto takes beyond 8,192 outcomes and reports.
	Sampler string
	// MinNoise ("min_noise", default 1e-6) is the least noise variance in units of
	// the variance of the results.
	MinNoise float64
	// KeepTail ("tail": "test", the default, or "keep") leaves values as they are
	// even if the tail test fires, up to a million robust standard deviations.
	KeepTail bool
	// Cost ("cost": "ignore", the default, "told" or "seconds"), with one
	// objective, weighs what may be gained against what it costs: what trials
	// were told to have cost, or how long they ran. The study's MaxCost is about what
	// was told, whichever it is.
	Cost CostSource
	// Constraints ("constraints", a JSON object: {"latency": {"max": 10}}) is what
	// metrics told with outcomes must keep to: a completed trial that does not teaches
	// what it was told, and that its configuration is not feasible. It is not
	// recommended while another is.
	Constraints []Constraint
	// IgnoreFailures ("failures": "learn", the default, or "ignore") has trials that
	// crashed say nothing. Else they are taken to be infeasible. Those that expired or
	// were cancelled say nothing anyway.
	IgnoreFailures bool
	// MaxStep ("max_step", default 0: inferred) is the step at which a report is
	// worth an outcome. Inferred, it is the median of the last steps of completed
	// trials.
	MaxStep int64
	// IgnoreReports ("reports": "learn", the default, or "ignore") has the model
	// learn from outcomes only; of pruned trials that have reported, nothing.
	IgnoreReports bool
}
