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
// The ranges are those of [theory.Space]. They depend on n and on the median distance of
// inputs, and on d only through that distance. One training passes through all values of
// passes and iterations, so these are not searched. They stand in the space as a constant,
// the largest value, and every step is measured. Even counts are an ordinal of up to 33
// values in geometric progression. Kernels are an ordinal too, ordered by smoothness, so
// that a result also informs the model about neighbouring kernels. The first trials are
// theory's settings and the same with half the length scale, because the median is larger
// than the length scales in the tables of the papers. Where inputs are several, a third has
// the length scales and λ that [training.Learn] fits to the training rows, and the parameter
// relevance chooses between one length scale and these proportions. Where a trial leaves out
// rows in closed form, and the study has three trials for each start, the others have each
// kernel and each relevance, with two length scales. Without them a search may end beside
// the best kernel. A study with only a time budget has no such starts.
//
// [Options.Ranges] replace theory's ranges. They may exclude theory's settings. The first
// trial is then the nearest configuration. Ranges are fixed for a study, as its space is. A
// study with other ranges can take its trials over ([Tuning.CheckSource],
// [Tuning.Continue]). Even counts follow theory's progression within and beyond theory's
// range, so a wider range contains all values of a narrower one. [Edges] reports where the
// best trial lies at an end of a range. It leaves out limits that the learner sets, such as
// n centres, and a λ below which rounding errors decide. The study stores these limits in an
// attribute.
//
// # Objective
//
// The objective is the error on the validation rows, to be minimized. Its name is
// validation-rmse or similar. Where the steps of a learner regularise (gradients, passes)
// the objective is the error of the best step, and the final fit ends there. Where the
// steps approach one model that λ regularises (FALKON, direct solutions) it is the error of
// the last step. The number of steps such a learner takes depends on how near M is to n, so
// the best step does not carry over to the final fit, which has more rows. Every trial has
// the same seed. Equal configurations therefore have equal errors, and comparisons are
// paired. [Tuning.Best] returns the least error. Each step is reported before the next
// begins, and a trial that the pruner stops ends there. The pruner is the median rule from
// half the steps on, because FALKON with a small λ begins slowly and ends best
// (bench/docs/experiments.md, "Tuning the bundled learners").
//
// A fit that diverges, or whose error is not finite, is infeasible, and the proposer learns
// to avoid such configurations. Any other error, including a panic, fails that trial only.
//
// Few rows have folds in place of one split ([Options].Folds, [DefaultFolds]). The squared
// loss of falkon and krr leaves out one row at a time in closed form, in the time of one
// fit. The objective is the error of these n outputs. It counts all n rows in the ridge λn
// and is that of the exact solution. The space and the learned length scales are then those
// of all n rows. All of them are centres, or as many as theory searches if that is less,
// because fewer lose accuracy and save little time. A range of centres or a sampler changes
// that. Other learners have k folds, as does falkon in single precision, or with a fixed
// solver, tolerance or number of iterations. A trial fits once for each fold of training and
// validation rows together, with classes in equal shares. The objective is the mean error of
// the folds. Each fold is a report, so the pruner
// ends trials between folds, and a trial that was interrupted continues with the next fold.
// Each fold takes the error of its own best step where steps regularise. The final fit then
// ends at the mean of these steps.
//
// Where trials leave out rows in closed form and the target is a number, the final model is
// an average of the best trials of several kernels ([Tuning.Average]). It had less error than
// the best trial on most small sets (bench/docs/benchmarks.md, "Tuned learners").
//
// # What trials share
//
// The data, the split, the encoding and the median distance are computed once. A trial only
// fits, and nothing that a fit computes is kept for the next, because length scales differ
// (bench/docs/experiments.md, "Tuning the bundled learners"). If a trial started from another
// trial's coefficients, its result would depend on the trials before it. Within a trial,
// the triangles that every iteration of FALKON solves with stay packed
// (internal/blocked.Triangle).
//
// # Determinism
//
// With one worker, equal data, options and study seed give the same trials and the same
// model, to the bit, regardless of interruptions. Nothing depends on time, unless the study
// has a time budget.
package autotune
