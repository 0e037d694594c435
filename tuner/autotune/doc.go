// Package autotune tunes the bundled learners through the tuning service. A [Tuning] makes
// the study of a learner on a data set, and runs its trials.
//
//	training.Data ──New──► Tuning ──Study──► tuner.Service ──ask──► trial
//	                          │                   ▲                  │
//	                          │        report, told to stop          │
//	                          └──Trial──► Fit on training rows ◄─────┘
//	                          └──Refit──► the model, of training and validation rows
//
// Package tuner/runner asks, tells, keeps leases and continues after an interruption. It
// runs [Tuning.Trial] in place of a command. Several processes and machines with the same
// data can work on one study. The study stores a fingerprint of the data, and
// [Tuning.Check] refuses other data.
//
// # Search space
//
// The ranges are those of [theory.Space], or [Options.Ranges]. Passes and iterations are
// constants with the largest value, because every step of a training is measured. Even
// counts are an ordinal of up to 33 values in geometric progression, and kernels are one
// ordered by smoothness. The first trials are theory's settings, the same with half the
// length scale, and the length scales and λ that [training.Learn] fits. The parameter
// relevance chooses between one length scale and these proportions. Where a trial leaves out
// rows in closed form, and the study has three trials for each start, the others have each
// kernel and each relevance. A study with only a time budget has no such starts.
//
// Ranges are fixed for a study. A study with other ranges can take its trials over
// ([Tuning.CheckSource], [Tuning.Continue]). [Edges] reports where the best trial lies at an
// end of a range. It leaves out limits that the learner sets, which the study stores in an
// attribute.
//
// # Objective
//
// The objective is the error on the validation rows, to be minimized. Where the steps of a
// learner regularise (gradients, passes) it is the error of the best step, and the final fit
// ends there. Each step is reported before the next begins, and the pruner is the median rule
// from half the steps on. Where the steps approach one model that λ regularises (FALKON, direct
// solutions) it is the error of the last step. Centres are the most that theory's range has, and
// not searched. A trial fits a few of them first, about 10√n, which is a small part of the time,
// and the pruner judges by that fit. Every trial has the same seed, and few centres are among
// many, so comparisons are paired.
//
// For classes the objective is a proper score, the log loss of probabilities or the squared error
// of scores, and trials tell the class error beside it. The final model has probabilities, by
// scores of rows that a fit left out.
//
// A fit that diverges, or whose error is not finite, is infeasible, and the proposer learns
// to avoid such configurations. Any other error, including a panic, fails that trial only.
//
// Few rows have folds in place of one split ([Options].Folds, [DefaultFolds]). The squared
// loss of falkon and krr leaves out one row at a time in closed form. Its objective is the
// error of these n outputs, of the exact solution with the ridge λn, and all rows are
// centres, or as many as theory searches. Other learners have k folds, as does falkon in
// single precision, or with a fixed solver, tolerance or number of iterations. The objective
// is the mean error of the folds, and each fold is a report, so a trial can end or continue
// between folds. Where steps regularise, the final fit ends at the mean of the best steps.
// A row is in one fold with its whole weight.
//
// Where trials leave out rows in closed form and the target is a number, the final model is
// an average of the best trials of several kernels ([Tuning.Average]).
//
// # Determinism
//
// Trials share the data, the split, the encoding and the median distance, and nothing that a
// fit computes. With one worker, equal data, options and study seed give the same trials and
// the same model, to the bit, regardless of interruptions. Nothing depends on time, unless
// the study has a time budget.
package autotune
