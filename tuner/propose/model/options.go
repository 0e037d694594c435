package model

// Options determine how a study is modelled. Their names in parentheses are those in the
// JSON of the proposer "bkb".
type Options struct {
	// Start ("start", 1 to 10000) is the number of results before there is a model.
	// Enqueued and added trials count. The default is 4, and
	// with several objectives 2d + 4 and at most 16 in d dimensions.
	Start int
	// Cap ("cap", 16 to 2048, default 256) is the maximum number of inducing points. Where
	// trials report, each takes up to five of them while there is room for all.
	Cap int
	// Sampler ("sampler", "auto", the default, "rls" or "bless") draws the
	// inducing points where there are more different configurations than Cap. RLS,
	// Algorithm 5 in Carratino (2020), reads all results. BLESS, Algorithm 3, reads few,
	// and auto uses it beyond 8,192 outcomes and reports.
	Sampler string
	// MinNoise ("min_noise", default 1e-6) is the least noise variance in units of
	// the variance of the results.
	MinNoise float64
	// Far ("far", "auto", the default, "on" or "off"), with one objective, looks for other
	// basins with a second model. With auto it does in spaces where some parameters depend
	// on others, and in large ones with three or four ordered coordinates. Elsewhere it has cost
	// more than it gained.
	Far bool
	// Cost ("cost", "ignore", the default, "told" or "seconds"), with one objective, weighs
	// the possible gain against the cost. The cost is told with trials, or it is the time
	// that they ran. The study's MaxCost always counts told costs.
	Cost CostSource
	// Constraints ("constraints", a JSON object such as {"latency": {"max": 10}}) are
	// limits on metrics told with outcomes. Each metric is modelled, and the probability to
	// keep its limits counts in the score. A completed trial that breaks one counts with its
	// objective. It is recommended only if no other is.
	Constraints []Constraint
	// IgnoreFailures ("failures", "learn", the default, or "ignore") leaves out crashed
	// trials. By default they count as infeasible as far as parameters explain them (see
	// [Engine.Blames]). Expired and cancelled trials never count.
	IgnoreFailures bool
	// MaxStep ("max_step", default 0, inferred) is the step at which a report equals an
	// outcome. If inferred, it is the median of the last steps of completed trials.
	MaxStep int64
	// IgnoreReports ("reports", "learn", the default, or "ignore") makes the model learn
	// from outcomes only. Pruned trials that have reported are then left out.
	IgnoreReports bool
}
