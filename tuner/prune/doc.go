// Package prune decides which running trials to stop early.
//
// A [Pruner] receives every trial that changed ([Pruner.Update]). For any running trial it
// answers whether to stop it ([Pruner.Decide]). [New] makes the pruner that a study names:
//
//   - "median", "percentile": stop a trial whose best value
//     so far is worse than the median (percentile) of the values of completed trials
//     at the same step. The rule of Google Vizier (Golovin et al., KDD 2017) in
//     Optuna's form.
//   - "asha": asynchronous successive halving (L. Li et al.: A
//     System for Massively Parallel Hyperparameter Tuning, MLSys 2020), in the
//     variant that stops trials instead of pausing them. At steps r, rη, rη², …
//     the best 1/η of the trials so far continue.
//   - "hyperband": several such ladders that begin at r, rη, …,
//     so that trials which become good late are not stopped too early (L. Li
//     et al.: Hyperband, JMLR 2018). Each trial belongs to one of these brackets,
//     drawn by study seed and trial number in the paper's proportions
//     ⌈(s_max+1)·ηˢ/(s+1)⌉.
//   - "threshold": stop a trial whose value leaves bounds.
//   - "patience": stop a trial that no longer improves.
//   - "model": stop a trial whose forecast is worse than the best
//     trial. The proposer's model predicts the final value from the reports so far
//     and all other trials. The trial stops if this prediction is worse than the
//     model's mean at the best trial so far, even if it were width·σ better
//     (μ + bσ < μ of the incumbent, for maximization). It needs a proposer that has
//     a model, bkb. See [Guided].
//   - "none" and "": no pruner.
//
// docs/cli.md has their options. A pruner looks at one metric, an objective or any other
// that trials report.
//
// "median", "percentile" and "model" compare a trial with trials that completed. If such a
// rule stops one trial after the other, nothing completes any more, and a proposer with a
// model may suggest the same place again and again. So after four in a row ("max_streak")
// the oldest running trial runs to its end.
//
// # What a verdict depends on
//
// A verdict is a function of the trials as they stand, as if Decide read the whole history.
// It does not depend on the order of events or on earlier verdicts. A restart therefore
// changes nothing, and reports in a batch are judged like single reports. Of each trial,
// only the reports under the last lease count:
//
//   - asha and hyperband count running, completed and pruned trials,
//   - median and percentile count completed trials, and the pruned trials since the last of
//     them ended,
//   - model counts the trials that its model knows (package propose), as it stands, and the
//     pruned ones like median,
//   - failed, infeasible and queued trials never count. Their reports change no
//     verdict,
//   - a NaN is ignored, except that threshold treats it as out of bounds and patience
//     as a step without improvement. The infinity on the bad side ranks last.
//
// # Differences from the papers
//
// A trial passes a rung with its first report at or after the rung and before the next one.
// A trial without such a report is not on that rung. A trial that has passed a rung is
// judged again at each later report until the next rung, by its best value since. If a
// trial continued because it had few competitors, it can still be stopped when more arrive.
// On a rung with fewer than MinTrials trials no trial is stopped. Resources are steps as
// reported, so a program that counts epochs reports the first as step 1.
//
// # Costs
//
// The cost of model is that of its forecasts, O(m²) each for m inducing points (package
// propose). Between Updates it keeps one word for every running trial.
//
// With n trials, an Update costs O(log n) for each new report that matters, plus n/500
// steps to find its place on a rung. So does a Decide. Median and percentile process all
// reports of a trial when it completes. Memory is 16 bytes for every trial on every rung, 8
// for every judged report of a completed trial, a few words for every running trial, and
// one byte for every trial.
package prune
