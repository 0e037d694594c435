// Package propose turns a study's history into the next configurations to try.
//
// A [Proposer] sees a [View] of the study and makes suggestions for the trials
// that come next. [New] makes the one that a study names:
//
//   - "bkb": budgeted kernel bandits (thesis Algorithm 5) on mixed and conditional
//     spaces, see below. Options are those of [BKBOptions].
//   - "sobol", also what an empty name means: scrambled Sobol' points, which cover the space
//     more evenly than chance (package internal/sobol). One point a suggestion,
//     in order, from the first. It has no options.
//   - "random": uniform in the unit cube, that is, uniform on each parameter's
//     scale. It has no options.
//   - "grid": every combination of listed values, once. Options are those of
//     [GridOptions].
//
// What only a model can do is in interfaces that a caller asks a Proposer for:
// [Anchorer], [Recommender], [Predictor], [Forecaster], [Diagnoser].
//
// # BKB
//
// The first [BKBOptions].Start results come from a Sobol' design, from the queue
// or from elsewhere. From then on
//
//	results ─► targets ─► posterior of each objective ─► UCB ─► suggestion
//	   │          ▲           ▲                           ▲
//	   └─► model event: transformation, hyper-parameters, │
//	       inducing points                    pending trials: σ shrinks
//
// Inputs are points of the unit cube (package space), with Matérn-5/2 on ordered
// coordinates, a length scale each, times exp(−[u ≠ v]/ℓ) for every category.
// Integers and steps are rounded before the kernel sees them, and what is inactive
// has one fixed coordinate, so that it plays no part.
//
// Targets are standardised; larger is better. If the tail test fires (the worst
// value is more than 6 robust standard deviations below the median, 1.48 median
// absolute deviations each, or the best more than 20 above), what is more than one
// below is compressed to −1 − log, at least −5, and the good side beyond 20
// likewise but without end. If the values are skewed towards the bad side, by a
// likelihood-ratio test at 5 %, they get the power of Yeo and Johnson (2000)
// that makes them most like a normal sample instead, at most 2, which is the
// logarithm on the bad side; there, too, the least is −5. After 50 and 100 trials on
// twelve of BBOB's functions in 5 and 10 dimensions (instance 3, 4 seeds) this had mean
// rank 1.35 and 1.50 against 1.65 and 1.50 without, on tables and classic functions
// 1.50 and 1.40 against 1.50 and 1.60. Powers up to 2.5 are better on BBOB and worse on
// tables. To take the logarithm of losses first, where that makes them likelier to be
// normal, was worse: of the runs of tuner bench bo (5 seeds) so many had the lower or
// higher regret by it after 50 and after 200 trials: BBOB 16/39 and 27/44, tables 3/2
// and 6/5, the others being the same.
// What is worse than −5 counts as −5 where the model learns; what one running trial
// comes to is foretold on a scale that goes on below, by the logarithm of the
// logarithm, and is undone exactly. So a forecast may be as bad as a trial reports.
// To learn on that scale took longer: on BBOB's functions in 5 dimensions (instance
// 2, 2 seeds) the mean log10 of the regret after 100 trials was 0.08 ± 0.05 above.
//
// The posterior is sparse, as thesis (7.1), and exact while there are not more
// different configurations than [BKBOptions].Cap: then BKB is GP-UCB. Where trials
// report (see Fidelity), each is up to five points, and Cap is reached so much
// sooner. Beyond,
// inducing points are drawn with p = min(1, 4σ²/ξ²), the best 24 always, then what
// other trials came to, then reports; all results count. If the cap binds, residuals
// count as noise (FITC), and [Diagnosis] says so; those of reports always do.
// Between model events every result becomes an inducing point while there is room;
// a quarter of it is not for reports.
//
// Hyper-parameters maximise the posterior density with the priors of
// [gp.DimensionScaled], exactly, on 160 results at most: the best 53 and others drawn
// at random. Noise is learnt; a told standard error adds to it, and n replicates
// divide it by n. The prior of its variance is wider than there, LogNormal(−2, 2) for
// LogNormal(−4, 1), under which next to no noise is as good as impossible. Of 400 runs
// (the problems of tuner bench bo, 10 seeds) so many had the lower or higher regret
// by it after 50 and after 200 trials: BBOB 131/106 and 124/114, with noise 21/19
// and 21/19, classic functions 29/11 and 19/21, tables 29/30 and 32/27. A fit of the
// sparse posterior to all results would be worse and dearer: of 600 results, half of
// them near the optimum, the exact posterior then had a log loss of other such results
// (Hartmann-6, Levy-8, Rosenbrock-5; 3 seeds; TestFitExperiment) of
//
//	160 results, exactly                      −1.49   0.11  −2.56   0.2 s
//	300 results, exactly                      −1.61   0.09  −2.81   0.6 s
//	all, 160 inducing points, DTC             −0.69   0.28  −1.61   1.4 s
//	all, 160 inducing points, Titsias' bound  −0.44   0.37  −1.04   1.6 s
//	all, 64 inducing points, Titsias' bound   −0.23   0.47  −0.69   0.5 s
//
// Input warping was measured, and is left out: Matérn of w(u) = 1 − (1 − uᵃ)ᵇ (after
// Snoek, Swersky, Zemel and Adams, ICML 2014) on every ordered coordinate, with a and b
// fitted by the same events, log a and log b ~ N(0, s²). So many runs had the lower or
// higher regret by it after 50, 100 and 200 trials: of 120 on BBOB's functions (instance
// 2; d = 2 and 5, 2 seeds, d = 3, one), and of 160 of tuner bench bo (5 seeds; its
// functions of BBOB in 2 and 5 dimensions):
//
//	                        s = 0.75               s = 0.3
//	BBOB, instance 2   40/67  47/60  53/50    40/60  48/54  53/50
//	    d = 2          21/22  24/19  27/15    19/21  22/20  25/17
//	    d = 3           5/16   5/16   9/11     9/10   8/12   8/13
//	    d = 5          14/29  18/25  17/24    12/29  18/22  20/20
//	BBOB                                      35/34  35/36  34/36
//	    with noise                             9/10  12/8   12/8
//	classic functions   8/9    3/9    2/5      7/9    7/5    3/2
//	tables             11/18  11/17  13/14     9/11  12/13  11/11
//
// It is no better from 10d results on only (s = 0.75: 16/14, 28/35, 33/38 of 96), nor
// where it has to pass a likelihood-ratio test at 5 % (9/12, 11/20, 27/18). It does what
// it is for: with every scale wrong by two decades (ten of the functions, d = 2 and 5, 2
// seeds) s = 0.75 had 29/8, 20/13 and 21/12 of 40 runs, and regained 0.23, 0.20 and 0.46
// of the 0.94, 0.81 and 0.81 decades of regret that this costs. A study that is told
// the scale (scale: log) loses none of them.
//
// A suggestion maximises μ + b·σ with b = √(c·d·log(2t + 1)), d the mean number of
// active parameters, c = 0.05; or, for every fourth trial, μ. It is looked for
// among Sobol' points and mutations of the best results, refined by smaller
// mutations around the best candidates, and then by the gradient where
// coordinates are continuous; a space of up to 2048 configurations is looked at
// whole. The design documents have c = 0.15. On Branin, Hartmann-6, Ackley-5,
// Rastrigin-4 and Levy-8 (4 seeds, medians) 0.05 was better after 50, 100 and 200
// trials on each: on Hartmann-6 0.011 above the optimum in place of 0.25 after 50,
// on Levy-8 0.10 in place of 0.66 after 200.
//
// Trials that run or wait are pending: they shrink σ as if observed and leave μ
// alone. Trials that are infeasible, crashed, failed with NaN, or completed without
// keeping to the option constraints, teach another posterior, of ±1; log of the
// probability of a positive label is added to the score. What a completed one
// measured counts as ever, but it is not recommended, and nothing is looked for near
// it because it is good. With the option failures = ignore crashes count for nothing,
// as if they were the machine's fault; a region where all trials crash is then not
// left: on the half square of TestFailuresAreLearnt all of the last 20 trials of 50
// crashed (6 seeds), and 7 to 12 where crashes were learnt from, next to the edge. A
// pruned trial counts with its reports (see Fidelity) or, where it has none, with
// what it was told; those that expired or were cancelled do not count. With several
// objectives every suggestion draws weights for an augmented Chebyshev scalarisation
// of the upper bounds, and mutates results of the front, of which those are kept that
// dominate the most hypervolume (see thin).
//
// From 5 ordered coordinates on (option trust_region), with one objective, the
// candidates are within a trust region (TuRBO, Eriksson et al., 2019) around the
// best posterior mean, with sides in proportion to the length scales; coordinates of
// conditional parameters and categories are free in it, and a space that is looked at
// whole has none. Its size is
// a fold of the results: three improvements in a row double it, max(4, d)
// suggestions in a row without one halve it, and below 1/128 it begins anew. Every
// 15 suggestions in a row without an improvement double b there, up to eightfold
// (option patience). The gap that may end a study is looked for everywhere; it is the
// largest upper bound that was found less the largest lower one of a result, before
// pending trials. It is no guarantee: that would be with beta = theory, as long as all
// points are inducing, for functions whose norm in the model's space is 1 at most.
// On BBOB's 24 functions (instance 2, one seed; TestVariants) after 50, 100 and 200
// trials this was better than without, worse than without (rest equal), and changed
// the mean log10 of the regret by
//
//	d = 5    8/7, 13/8, 15/6    −0.01 ± 0.06, −0.05 ± 0.08, −0.14 ± 0.10
//	d = 10  15/6, 13/6, 15/7    +0.05 ± 0.07, −0.10 ± 0.09, −0.11 ± 0.08
//
// so what is gained is little more than its error. With a b that does not grow it
// was 13/6, 11/8 and 10/12 in 10 dimensions; a growing b without a region was a
// loss in 5. On Hartmann-6 it is slower at first (medians after 50 trials 0.19 and
// 0.01, 6 seeds), on Levy-8 it may stay at a local optimum. Neither helps on
// Rastrigin's function in 4 dimensions (13.7 after 200 trials with and without, 6
// seeds), where what a product over coordinates learns is too local.
//
// With the option cost a suggestion maximises log(u − μ*) − p·log c in place of
// the bound u, that is, (u − μ*)/cᵖ, with μ* the best posterior mean and c the
// posterior of the cost, which is modelled by its logarithm like an objective.
// p is 1, or, if the study has a MaxCost, what is left of that (cost cooling: Lee
// et al., 2020); exploiting suggestions do not look at costs. Costs are those told
// with outcomes, in the unit of MaxCost, or the seconds that trials ran; pruned
// trials do not teach it. MaxCost is spent by told costs alone, those of late results
// included: p does not fall, nor does the study end by it, where only seconds are
// known. If that is so, or no cost is, suggestions and [Diagnosis] come with a
// warning. The study ends when MaxCost is spent, and says so. On
// the table of Snoek, Larochelle and Adams (2012) of an SVM's error and training
// time, 16 seeds: after 3000, 6000 and 12 000 s it was 0.0085, 0.00058 and 0.00016
// above the best (geometric means), without costs 0.0083, 0.0013 and 0.00013; on a
// bowl whose sides cost between 1 and 100, after 100 it was 0.0006, without costs
// 0.0043. So it pays while budgets are short.
//
// A configuration that the study has, whatever came of it, is passed over as long
// as there is another (on_duplicate: resample). Then it is suggested again, or
// the study ends (reuse: what is known stands, nothing is run twice); or it may
// be suggested at any time (replicate).
//
// With one objective and next to no noise (ξ² ≤ 1e-4) the same goes for what is as
// good as a repetition, unless replicate: within 0.1 length scales of an inducing
// point, σ < 0.6ξ, and a mean that exceeds the best by less than 0.6ξ. Of the
// candidates the best that is not so is suggested; suggestions that exploit look at
// none of this. Of 1200 suggestions (200 trials, 6 seeds) so many were within 1e-3,
// 1e-4 and 1e-5 of the cube of a trial before, and so much was the mean log10 of the
// regret, without and with it:
//
//	Branin      668, 578, 449   −7.1      571, 252, 174   −8.5
//	Hartmann-6  480, 296, 111   −4.4      211, 112,  43   −5.3
//	mixed       420, 321, 159   −9.0      267, 183, 147  −10.7
//
// Where exploiting suggestions pass over it as well there are 4 of 2000 within 1e-5
// on Branin's, and on Hartmann's and the mixed space of package bench/bo
// regrets after 200 trials are five times higher (4 seeds).
//
// Of one objective the best measured of those trials is recommended whose posterior
// mean is within one standard deviation of the best mean (option recommend:
// plausible). The mean alone takes for luck what the model does not explain, the
// measurement alone takes luck for skill. This was the mean normalised regret of what
// was recommended in runs of tuner bench bo (240, 40, 61, 40), by the mean, so, and by
// what was measured, after 50 trials and after 200:
//
//	BBOB               0.074  0.066  0.065   0.043  0.033  0.031
//	with noise         0.175  0.173  0.143   0.109  0.107  0.104
//	tables             0.061  0.058  0.061   0.031  0.026  0.032
//	classic functions  0.086  0.081  0.076   0.006  0.006  0.006
//
// Useful workers are those of BBKB's rule 1 + Σσ²/ξ² ≤ 2.
//
// # Late results
//
// What the former holder of a trial tells after another has taken it over (see package
// study) is a measurement like any other: a result of its own, of the same
// configuration, at its place in the log, with what was reported under its lease. So a
// trial told by both is two replicates. While the new holder still works, the trial is
// measured once and pending once, as its second measurement is yet to come. A late
// result that is infeasible, crashed or NaN counts as such, one that was cancelled for
// nothing. What it cost counts if it was told; how long it ran is not known. For the trust
// region and patience a suggestion counts once, by what was heard of it first.
//
// Recommended are completed trials only: one that has expired is not, whatever its
// former holder found; but what was measured of a completed one is the mean of its
// outcome and its late results. Without a model, and in tables, its outcome alone counts,
// and pruners compare trials by what was reported under their last leases. Studies made
// by earlier programs go on as without late results up to their next model event, which
// is due at once if there are any (see modelVersion); so their logs still explain every
// suggestion.
//
// # Fidelity
//
// Reports of an objective are measurements of it at a lower fidelity, and their
// step says at which. Nobody has to ask for it: as soon as a completed trial has
// reported, the inputs of the objectives' models have one coordinate more,
//
//	δ = max(log₂((S + 1)/(step + 1)), 0),   k((u, δ), (v, δ′)) = k(u, v)·exp(−|δ − δ′|/ℓ_δ)
//
// with S the full step: the option max_step, or the median of the last steps of
// completed trials. Outcomes are at δ = 0, whatever step they came at, and
// suggestions, recommendations and predictions are too. Without noise that is the
// autoregressive model of Kennedy and O'Hagan (Biometrika 2000): what a trial
// reported before tells nothing beyond what it reported last. ℓ_δ is fitted with
// the other hyper-parameters (prior LogNormal(log 16, 1.2)).
//
// Curves fall or rise as they go on, so values are first made what they are worth
// as outcomes: level by level ⌊log₂(step + 1)⌋, from the outcome down, an affine map
// takes the median and the median absolute deviation of the values at one level to
// those at the next, over trials that have both, also pruned ones. How far from
// that completed trials ended is the noise of such values. A trial counts with
// its outcome and at most 4 reports, the last and such as are 1.5 doublings apart;
// NaN, ±Inf and what is more than 12 doublings from S are left out. Of a trial that
// runs the latest 256 reports are looked at; they move its prediction as long as
// it runs. Completed trials without reports count as ever, and where nobody
// reports, or with the option reports = ignore, the model is the one without δ.
//
// A pruned trial also counts as an outcome: m + ρ(y − m), with y its last value, ρ
// = exp(−δ/ℓ_δ), and variance a(1 − ρ²) besides. Other trials at its place would be
// pruned as well, and so σ there would never shrink and be asked for for ever.
// Hyper-parameters are not fitted to it, as it was made by them: with it the length
// scales of a bowl came out as 0.04 in place of 1. On the tasks of
// TestCurveExperiment that changed the mean log10 of the regret after 15 and 30 full
// trials by +0.02 ± 0.05 and +0.13 ± 0.07 under halving (5 tasks, 24 seeds), +0.03 ±
// 0.03 and −0.03 ± 0.06 under the median rule, and +0.03 ± 0.03 and −0.02 ± 0.08 under
// the pruner model (10 seeds): nothing that is significant.
//
// [Forecaster] gives the pruner "model" (package prune) the posterior at δ = 0 of a
// running trial with its own reports, at O(m²).
//
// # Model events
//
// Hyper-parameters, transformations and inducing points change at model events
// only: the first when the start design is there, then after every 20% more
// results, at most 512 or a 64th (of which 2 to 16 may come before it must be there). What
// is in between follows from the results since, applied one by one in the order
// of the log. So the state after a restart, made from the event and what came
// after it, is the same to the bit.
//
// # Determinism
//
// A suggestion is a function of the study's spec, its seed and the trials in the
// View. Nothing else: no clock, no memory that a restart would lose. So n
// suggestions at once are the same as one at a time, and a study that is
// restarted after every event gets the same suggestions, bit for bit. What a
// Proposer keeps in memory is a digest of the View, made again from the next View
// when it is missing.
//
// What a suggestion was drawn with is its Seed: of random, the seed of its stream
// (package internal/stream, by study seed and trial number); of sobol and grid,
// the number of the point or cell. With the spec it is enough to make the
// configuration again. The next point is the one after the last suggested; where
// a study has suggestions from elsewhere too, it tells its own by their Phase,
// [PhaseStart].
//
// # Repetitions
//
// On a space with few configurations, independent points repeat one another. If
// the study already has a configuration, suggested or given by a user, sobol and
// random pass over it and look at the next point, 64 of them at most; where all
// are taken they repeat one, as they do when nothing new is left, for the
// objective may be noisy. A grid passes over whatever the study has, and ends:
// [ErrExhausted]. On spaces too large for repetitions (an unconditional
// continuous parameter suffices) nothing is compared.
//
// # Costs
//
// Of bkb, m inducing points, n results: a suggestion O(candidates·m(m + d)), of
// which there are fewer from m = 200 on, a result or a pending trial O(m²), a model
// event a fit of 160 results and O(n m²), a restart O(n m²). Inducing points are
// drawn from at most 8192 results. In 8 dimensions on two cores with nothing else to
// do (tuner bench bo --latency, one run; docs/benchmarks.md), what waits for a new
// model being apart:
//
//	results   m     p50      p99       CPU      with a new model   first after a restart
//	10²       196   8.0 ms   12.4 ms   7.8 ms   0.21 s             17 ms
//	10³       213   8.3 ms   15.1 ms   7.9 ms   0.05 s             54 ms
//	10⁴       179   8.6 ms   18.8 ms   8.5 ms   0.18 s             85 ms
//	10⁵       175   8.5 ms   14.8 ms   8.2 ms   0.80 s             0.60 s
//
// Of the others, a suggestion costs O(parameters + conditions), some 0.3 µs a
// parameter, and a µs for a random stream, at any number of trials. The digest of a
// finite space takes some 40 bytes a trial, and reads each trial once. A grid is
// compiled once; a cell is found from its number in O(parameters·log values), and
// nothing is listed but the values of single parameters. Conditions on several parents
// can make compiling expensive; it gives up with an error instead of taking more than
// about a second.
package propose
