// Package autotune tunes the bundled learners through the tuning service. A [Tuning] makes
// the study of a learner on a data set, and runs its trials.
//
//	training.Data ──New──► Tuning ──Study──► tuner.Service ──ask──► trial
//	                          │                   ▲                  │
//	                          │        report, told to stop          │
//	                          └──Trial──► Fit on training rows ◄─────┘
//	                          └──Refit──► the model, of training and validation rows
//
// Package tuner/runner runs [Tuning.Trial] in place of a command, on several machines too. A study
// stores a fingerprint of its data.
//
// # Search space
//
// The ranges are those of [theory.Space], or [Options.Ranges]. Passes and iterations are
// constants with the largest value, because every step of a training is measured. Centres are
// the most that theory's range has. The first trials are theory's settings, the same with half
// the length scale, and the length scales and λ that [training.Learn] fits with Matérn-5/2 and with
// the Laplace kernel, whose trials have their own. The parameter
// relevance chooses between one length scale and these proportions. With one split, or where each
// row is left out, and 100 rows or more, metric chooses a full metric in place of both, if
// [training.LearnMetric] finds one with less error on rows that it holds out, and one start has it.
// If the study has three trials for each start, the others of falkon, krr, nystrom and log-falkon have each kernel: with
// one split at these, and in closed form at each relevance, or at learned relevance and the full metric. A study with
// only a time budget has no such starts.
//
// # Objective
//
// The objective is the error on the validation rows, to be minimized. For classes it is a
// proper score, the log loss of probabilities or the squared error of scores, and trials tell
// the class error beside it. Where the steps of a learner regularise (gradients, passes) it is
// the error of the best step, and the final fit ends there. Each step is reported, and the
// pruner is the median rule from half the steps on. Where steps approach one model that λ
// regularises, it is the error of the last step. A trial then fits about 10√n centres first,
// and the pruner judges by that fit. Every trial has the same seed, so comparisons are paired.
//
// A fit that diverges, or whose error is not finite, is infeasible. Any other error, including
// a panic, fails that trial only.
//
// Few rows have folds in place of one split ([Options].Folds, [DefaultFolds]). The squared
// loss of falkon and krr leaves out one row at a time in closed form. Other learners have
// k folds, whose mean error is the objective, and fits of about 10√n centres where the final fit has
// twice as many or more. Each fold is a report, so a trial can end or continue between folds. Where steps regularise, the final fit ends at the mean of the best
// steps. Without folds the final model of a regression of up to 10,000 rows is an average of trials
// of several kernels ([Tuning.Average]).
//
// # Determinism
//
// Trials share the data, the split, the encoding and the median distance, and nothing that a
// fit computes. A worker keeps their outputs for rows left out, so that the average and calibration fit
// only what another worker or an earlier run had. With one worker, equal data, options and study seed give the same trials and
// the same model, to the bit, regardless of interruptions, unless the study has a time budget.
package autotune
