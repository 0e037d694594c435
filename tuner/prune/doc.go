// Package prune says which running trials are not worth finishing.
//
// A [Pruner] hears of every trial that changed ([Pruner.Update]) and answers for
// any running one whether to stop it ([Pruner.Decide]). [New] makes the one that
// a study names:
//
//   - "median", "percentile" ([PercentileOptions]): stop a trial whose best value
//     so far is worse than the median (percentile) of what completed trials had at
//     the same step. The rule of Google Vizier (Golovin et al., KDD 2017) in
//     Optuna's form.
//   - "asha" ([HalvingOptions]): asynchronous successive halving (L. Li et al.: A
//     System for Massively Parallel Hyperparameter Tuning, MLSys 2020), in the
//     variant that stops trials instead of pausing them. At steps r, rη, rη², …
//     the best 1/η of the trials that came so far go on.
//   - "hyperband" ([HalvingOptions]): several such ladders that begin at r, rη, …,
//     so that trials which show late what they are worth have a chance too (L. Li
//     et al.: Hyperband, JMLR 2018). Each trial belongs to one of these brackets,
//     drawn by study seed and trial number in the paper's proportions
//     ⌈(s_max+1)·ηˢ/(s+1)⌉.
//   - "threshold" ([ThresholdOptions]): stop a trial whose value leaves bounds.
//   - "patience" ([PatienceOptions]): stop a trial that no longer improves.
//   - "model" ([ModelOptions]): stop a trial that the proposer's model does not
//     believe in: what it foretells of the final value, by the reports so far and
//     all other trials, is worse than what the best trial so far is worth, even if it
//     were width·σ better (μ + bσ < μ of the incumbent, for maximisation). It needs
//     a proposer that has a model, bkb; see [Guided].
//   - "none" and "": no pruner.
//
// A pruner looks at one metric, an objective or any other that trials report.
//
// # What a verdict depends on
//
// A verdict is a function of the trials as they stand, of what Decide could read
// from the whole history: not of the order in which things happened, nor of what
// was decided before. So a restart changes nothing, and batches of reports are
// judged like reports one by one. Of each trial, what counts is its reports under
// the last lease:
//
//   - asha and hyperband count running, completed and pruned trials,
//   - median and percentile completed ones,
//   - model those that its model hears of (package propose), as it stands,
//   - failed, infeasible and queued trials count nowhere: but for their absence,
//     they change no verdict, whatever they reported,
//   - a NaN is as if it had not been reported, except that to threshold it is out
//     of bounds and to patience a step without improvement. The infinity on the
//     bad side ranks last.
//
// # Where this departs from the papers
//
// A rung of the ladder is passed by the first report at or after it, and before
// the next; who reports too rarely to have one is on that rung not at all. A
// trial that has passed a rung is judged again at each later report, until the
// next rung, by its best value since: a promotion for want of competitors is
// taken back when they come. On a rung with fewer than MinTrials trials nobody is
// stopped. Resources are steps as reported: whoever counts epochs reports the
// first as step 1.
//
// # Costs
//
// Those of model are its forecasts', O(m²) each for m inducing points (package
// propose); between Updates it keeps a word for every running trial.
//
// With n trials, an Update costs O(log n) for each new report that matters, plus
// n/500 steps to find its place on a rung, and so does a Decide; for median and
// percentile all of a trial's reports are paid for when it completes. Kept are 16
// bytes for every trial on every rung, 8 for every judged report of a completed
// trial, a few words for every running trial, and one byte for every trial.
package prune
