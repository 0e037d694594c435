// Package model predicts the outcomes of configurations that have not been tried. From the
// results of a study it computes posteriors of each objective, of metrics with limits, of
// failures and of cost.
//
// [Model.At] digests a [View] and returns the [Engine] in effect, which predicts. An
// engine's [Outlook] includes the running and waiting trials. [Model.Anchor] returns the
// model event that is due, if one is. docs/model.md has the mathematics, under the names of the
// types here.
//
//	View ─► Results ─► Target ─► posterior of each surface ─► Engine ─► Outlook
//	           │          ▲           ▲                                    ▲
//	           └──► Event: target, hyper-parameters,                 pending trials
//	                inducing points
//
// # Rules
//
//   - Larger targets are better. A result teaches no target worse than −5, but a forecast of one
//     running trial may be as bad as the trial reports.
//   - Running and waiting trials are pending. They shrink σ as if observed and do not change μ.
//   - Trials that are infeasible, crashed, failed with NaN, or completed without a metric that has
//     a limit teach the posterior of success. Expired and cancelled trials never count. A pruned
//     trial counts with its reports or, where it has none, with its told values. The outcome that
//     the model infers for it is not among the data of a fit.
//   - The measurement of a completed trial that breaks a limit still counts for its objective.
//   - Pruned and crashed trials do not teach the model of costs. Only told costs spend MaxCost.
//   - A late result, told by the former holder of a trial, is a measurement like any other, at its
//     place in the log, with the reports under its lease. [Result.Guided] is true of a suggestion
//     once, for the result that came first.
//
// Hyper-parameters, targets and inducing points change at model events only (event.go).
// The state in between follows from the results since the event, one by one in the order of the
// log, so that a restart has the same to the bit. [Event] has a version, and a newer one is refused.
//
// With m inducing points and n results, a result or a pending trial costs O(m²), a prediction
// O(m(m + d)), a model event a fit of 160 results and O(n m²), and a restart O(n m²).
package model
