// Package katib serves the algorithms of Katib on a service. [Suggestion] makes the
// configurations of an Experiment, and [EarlyStopping] makes the rules that stop its trials
// early. Katib runs the trials, counts them, and reads their metrics.
//
// # Names and numbers
//
// Katib keeps the list of suggestions and asks for the next ones. It names the first new
// one by its index k. A suggestion is the trial k of the study, and its name in the cluster
// is EXPERIMENT-k. So the name of a trial is enough to tell its result, and nothing has to
// be remembered.
//
// The request that asks for suggestion k has the id suggestion-k. If an answer is lost,
// Katib asks again and gets the same suggestions. In the same way a trial is told once,
// although each call has the list of all trials.
//
// A trial that the study handed out a second time would shift the numbers. So the study has
// no retries, and its lease is longer than a trial, because Katib sends no heartbeats. Only
// this package may add trials to the study.
//
// # Lost studies
//
// If the study has fewer trials than Katib has suggestions, its file was lost. The study is
// then rebuilt from Katib's list. Each configuration is enqueued, handed out under its
// number, and told. A suggestion that is not in the list is told as cancelled, because its
// configuration is not known.
//
// # Costs
//
// A call costs an ask for each suggestion, and a tell for each trial that ended since the
// last call.
package katib
