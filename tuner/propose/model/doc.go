// Package model predicts the outcomes of configurations that have not been tried. From the
// results of a study it computes posteriors of each objective, of metrics with limits, of
// failures and of cost.
//
// [Model.At] digests a [View] and returns the [Engine] in effect, which predicts. An
// engine's [Outlook] includes the running and waiting trials. [Model.Anchor] returns the
// model event that is due, if one is.
//
//	View ─► Results ─► Target ─► posterior of each surface ─► Engine ─► Outlook
//	           │          ▲           ▲                                    ▲
//	           └──► Event: target, hyper-parameters,                 pending trials
//	                inducing points
//
// The theory is chapter 7 of Carratino (2020), Resource efficient large-scale machine
// learning, after Calandriello, Carratino, Lazaric, Valko and Rosasco (2019), Gaussian
// process optimization with adaptive sketching.
//
// docs/model.md has the mathematics with its sources, under the names of the types here. These
// are the targets ([Target]), the sparse posterior and the choice of inducing points ([Draw]),
// the priors of hyper-parameters, and fidelity.
//
// # Rules
//
//   - Larger targets are better. A result teaches no target worse than −5, but a forecast of one
//     running trial may be as bad as the trial reports.
//   - Running and waiting trials are pending. They shrink σ as if observed and do not change μ.
//   - Trials that are infeasible, crashed, failed with NaN, or completed without a metric that has
//     a limit teach the posterior of success, of labels ±1. With failures = ignore, crashes do not
//     count. Expired and cancelled trials never count. A pruned trial counts with its reports or,
//     where it has none, with its told values.
//   - The measurement of a completed trial that breaks a limit still counts for its objective.
//   - Pruned and crashed trials do not teach the model of costs. Only told costs spend MaxCost.
//   - A late result, told by the former holder of a trial, is a measurement like any other, at its
//     place in the log, with the reports under its lease. While the new holder still works, the
//     trial is measured once and pending once. [Result.Guided] is true of a suggestion once, for
//     the result that came first. A [Pool] has the mean of a trial's outcome and of its late
//     results.
//   - The outcome that the model infers for a pruned trial, so that σ shrinks at its place, is not
//     among the data of a fit.
//
// # Model events
//
// Hyper-parameters, targets and inducing points change at model events only. The first is
// due when the start design is complete. Then one is due after every 20% more results, at
// most 512 or a 64th. From 128 results on, 2 to 16 more results may come before the event
// must be in the log. The state in between follows from the results since the event,
// applied one by one in the order of the log. So the state after a restart, which is made
// from the event and the results after it, is the same to the bit. [Event] has a
// version, and a newer one is refused.
//
// # Costs
//
// With m inducing points and n results, a result or a pending trial costs O(m²), a
// prediction O(m(m + d)), a model event a fit of 160 results and O(n m²), and a restart O(n
// m²).
package model
