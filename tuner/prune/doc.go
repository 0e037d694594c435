// Package prune decides which running trials to stop early.
//
// A [Pruner] receives every trial that changed ([Pruner.Update]). For any running trial it
// answers whether to stop it ([Pruner.Decide]). [New] makes the pruner that a study names, with
// the options of docs/cli.md:
//
//   - "median", "percentile": stop a trial whose best value so far is worse than that share of
//     the values of completed trials at the same step (Golovin et al., KDD 2017).
//   - "asha": asynchronous successive halving (L. Li et al., MLSys 2020) that stops trials
//     instead of pausing them. At steps r, rη, rη², … the best 1/η so far continue.
//   - "hyperband": several such ladders that begin at r, rη, … (L. Li et al., JMLR 2018). Study
//     seed and trial number draw a trial's ladder in the proportions ⌈(s_max+1)·ηˢ/(s+1)⌉.
//   - "threshold": stop a trial whose value leaves bounds.
//   - "patience": stop a trial that no longer improves.
//   - "model": stop a trial whose forecast is worse than the model's mean at the best trial, even
//     if it were width·σ better. It needs a proposer that has a model, see [Guided].
//   - "none" and "": no pruner.
//
// "median", "percentile" and "model" compare a trial with trials that completed. If such a
// rule stops one trial after the other, nothing completes any more. So after four in a row
// ("max_streak") the oldest running trial runs to its end.
//
// A verdict is a function of the trials as they stand. It does not depend on the order of events
// or on earlier verdicts, so a restart changes nothing. Of each trial only the reports under the
// last lease count. asha and hyperband count running, completed and pruned trials, the others
// completed ones, and the pruned ones since the last of them ended. A NaN is ignored, except that
// threshold treats it as out of bounds and patience as a step without improvement.
//
// A trial passes a rung with its first report at or after the rung and before the next one, and is
// judged again at each later report until the next rung, by its best value since. On a rung with
// fewer than MinTrials trials no trial is stopped. Resources are steps as reported.
//
// A forecast costs O(m²) for m inducing points. Otherwise, with n trials, an Update costs O(log n)
// for each new report that matters and a move of up to 8n bytes, and a Decide O(log n). Memory is
// 8 bytes for every judged report, and a few words for every running trial.
package prune
