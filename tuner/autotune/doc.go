// Package autotune tunes the bundled learners through the service that tunes
// everything else: a [Tuning] makes the study of a learner on a data set, and runs
// its trials.
//
//	training.Data ──New──► Tuning ──Study──► tuner.Service ──ask──► trial
//	                          │                   ▲                  │
//	                          │        report, told to stop          │
//	                          └──Trial──► Fit on training rows ◄─────┘
//	                          └──Refit──► the model, of training and validation rows
//
// Who asks, tells, holds leases and comes back after an interruption is package
// tuner/runner, with [Tuning.Trial] in place of a command. So a study can be worked
// on by several processes and machines, which all have the same data: the study
// remembers a fingerprint, and [Tuning.Check] refuses others.
//
// # What is searched
//
// The ranges are those of [theory.Space]: they depend on n and on the median
// distance of inputs, not on d otherwise. Hyper-parameters through whose values one
// training passes, passes and iterations, are not searched: they stand in the space
// as a constant, the largest value, and every step is measured. Even counts are an
// ordinal of up to 33 values in geometric progression. Kernels are an ordinal too, by
// smoothness, so that the model learns about neighbours. The first trials are theory's
// settings and the same with half the length scale, because the papers' tables have
// lengths shorter than the median.
//
// [Options.Ranges] are searched in place of theory's. Theory's settings are then not
// always among them: the first trial has what is nearest. They are a study's for good,
// as its space is, but a study with other ranges can take its trials over
// ([Tuning.CheckSource], [Tuning.Continue]): even counts are theory's progression,
// within any range and beyond theory's, so that a wider one has them all. [Edges] tells
// where the best lies at an end of a range, and not at what the learner itself sets, as
// n centres: a study remembers these limits in an attribute.
//
// # The objective
//
// The error on the validation rows; smaller is better. It is named validation-rmse
// and so on. Of learners whose steps regularise (gradients, passes) it is that of the
// best step, and the final fit ends there. Of those that approach one model which λ
// regularises (FALKON, direct solutions) it is that of the last step: how many steps
// they take depends on how near M is to n, so the best one says nothing of the final
// fit, which has more rows. Every trial has the same seed, so equal
// configurations have equal errors and comparisons are paired: [Tuning.Best] is the
// least error. Each step is reported before the next begins, and a trial that the
// pruner gives up ends there. That is the median rule from half the steps on, because
// FALKON with a small λ begins slowly and ends best (docs/experiments.md, "Tuning the
// bundled learners").
// A fit that diverges, or whose error is not a number, is infeasible: the proposer
// learns to keep away. Any other error, a panic among them, is a failure of that
// trial alone.
//
// # What trials share
//
// Data, split, encoding and median distance are made once; a trial only fits.
// Trials share no result of a fit, because their length scales differ
// (docs/experiments.md, "Tuning the bundled learners"). A start from another trial's
// coefficients would make a trial's error depend on the trials before. Within a trial
// the triangles that every iteration of FALKON solves with stay packed
// (internal/blocked.Triangle).
//
// # Determinism
//
// With one worker, equal data, options and study seed give the same trials and the
// same model, to the bit, however often it was interrupted: nothing depends on
// time, unless the study has a budget of it.
package autotune
