// Package model predicts the outcomes of configurations that have not been tried. From the
// results of a study it computes posteriors of each objective, of metrics with limits, of
// failures and of cost.
//
// [Model.At] digests a [View] and returns the [Engine] in effect, which predicts. An engine's
// [Outlook] includes the running and waiting trials. [Model.Anchor] returns the model event that
// is due, if one is. docs/model.md has the mathematics, under the names of the types here.
//
//	View ─► Results ─► Target ─► posterior of each surface ─► Engine ─► Outlook
//	           │          ▲           ▲                                    ▲
//	           └──► Event: target, hyper-parameters,                 pending trials
//	                inducing points
//
// docs/model.md has the rules and the costs. Here larger targets are better. Running and waiting
// trials are pending, which shrinks σ as if they had been observed and does not change μ. Expired and
// cancelled trials never count. A late result, told by the former holder of a trial, is a measurement
// like any other, at its place in the log.
//
// Hyper-parameters, targets and inducing points change at model events only (event.go).
// The state in between follows from the results since the event, one by one in the order of the
// log, so that a restart has the same to the bit. [Event] has a version, and a newer one is refused.
package model
