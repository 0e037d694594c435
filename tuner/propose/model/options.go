package model

// Options determine how a study is modelled. docs/cli.md says what each is for, under its name in
// the JSON of the proposer "bkb".
type Options struct {
	Start          int          // start: results, enqueued and added ones too, before there is a model
	Cap            int          // cap: inducing points at most, up to five for a trial that reports
	Sampler        string       // sampler
	MinNoise       float64      // min_noise, in units of the variance of the results
	Far            bool         // far, with one objective: there is a second model for other basins
	Cost           CostSource   // cost, with one objective
	Constraints    []Constraint // constraints
	IgnoreFailures bool         // failures = ignore: crashed trials teach nothing
	MaxStep        int64        // max_step at which a report equals an outcome, 0 for the median of last steps
	IgnoreReports  bool         // reports = ignore: only outcomes teach
}
