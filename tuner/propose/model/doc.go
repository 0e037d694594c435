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
// # Inputs
//
// Inputs are points of the unit cube (package space). The kernel is Matérn-5/2 on ordered
// coordinates, with a length scale each, times exp(−[u ≠ v]/ℓ) for every category. A constant
// 1 is added, the prior variance of the mean of the process. The average of the targets is no
// estimate of that mean, because suggestions are better than typical points. Integers
// and steps are rounded before the kernel reads them. An inactive parameter has one fixed
// coordinate, so that it has no effect.
//
// # Targets
//
// [Target] standardises values. Larger is better. The tail test fires if the worst value is
// more than 6 robust standard deviations below the median (1.48 median absolute deviations
// each), or the best more than 20 above. Then a value more than one deviation below the
// median is compressed to −1 − log, at least −5. One beyond 20 on the good side is
// compressed likewise, without a limit. Values that are skewed towards the bad side, by a
// likelihood-ratio test at 5 %, get a power of Yeo and Johnson (2000) instead. It is the
// power up to 2 that makes them most like a normal sample. There, too, the least target is
// −5, and a power of 2 is the logarithm on the bad side. Finite spaces have no power.
//
// A value worse than −5 counts as −5 where the model learns. A forecast of one running
// trial uses a scale that continues below, by the logarithm of the logarithm, and can be
// inverted exactly. So a forecast may be as bad as a trial reports.
//
// # Posterior
//
// The posterior is sparse, as in (7.1) of Carratino (2020). It is exact while there are not
// more different configurations than the option cap. Then BKB is GP-UCB. Where trials
// report, each is up to five points, and the cap is reached sooner. Beyond the cap,
// samplers of package sketch draw the inducing points. The best 24 results are always among
// them, then other outcomes, then reports. All results count. The option sampler chooses:
//
//   - rls draws with p = min(1, 4nσ²/ξ²) under the posterior on the previous inducing
//     points, for n observations of an input (Algorithm 5 in Carratino, 2020). It reads
//     all results.
//   - bless goes from coarse to fine (BLESS, Algorithm 3 in Carratino, 2020) until the
//     room is full. It reads a twelfth of the results.
//   - auto, the default, is rls up to 8,192 rows of the history and bless beyond.
//   - uniform is for comparison.
//
// Each draw is a function of the results and the study's seed. A model event names the
// sampler, its λ, its path and the rows it read ([surrogate.Draw]), and a diagnosis shows them. If
// the cap binds, residuals count as noise (FITC), once for each input, and a diagnosis says
// so. Residuals of reports always do. Between model events every result becomes an inducing
// point while there is room, of which a quarter is not for reports.
//
// # Hyper-parameters
//
// Hyper-parameters maximize the posterior density with the priors of [gp.DimensionScaled],
// but logarithms of length scales are together N((μ − 3)·1, τ²I + (3 − τ²)11ᵀ) with τ = 0.5,
// in place of N(μ, 3) each ([gp.Exchangeable]). A few results do not show which parameters
// matter, and length scales then stay close to each other.
// The fit is exact, on 160 results at most, the best 53 and others drawn at random. Noise
// is learned. A told standard error adds to it, and n replicates divide it by n. The prior
// of its variance is LogNormal(−2, 2), which is wider than gp's LogNormal(−4, 1), so that
// almost no noise is possible.
//
// # Pending trials, failures and cost
//
// Running and waiting trials are pending. They shrink σ as if observed and do not change μ.
// Trials that are infeasible, crashed, failed with NaN, or completed without a metric that
// has a limit teach the posterior of success, of labels ±1. With failures = ignore, crashes
// do not count. Expired and cancelled trials never count. A pruned trial counts with its
// reports or, where it has none, with its told values.
//
// Each metric of the option constraints has a posterior of its own, which gives the
// probability that an outcome keeps its limits. The measurement of a completed trial that
// breaks one still counts for its objective.
//
// With the option cost another posterior models the logarithm of the cost. Costs are those
// told with outcomes, in the unit of the study's MaxCost, or the seconds that trials ran.
// Pruned and crashed trials do not teach it. Only told costs spend MaxCost, including those
// of late results. Where none is told, or only seconds are known, an engine's
// [Engine.Warnings] say so.
//
// # Late results
//
// A late result is told by the former holder of a trial after another worker has taken it
// over (see package study). It is a measurement like any other. It is a separate result of
// the same configuration, at its place in the log, with the reports under its lease. A
// trial told by both holders has two replicates. While the new holder still works, the
// trial is measured once and pending once, because its second measurement is yet to come. A
// late result that is infeasible, crashed or NaN counts as such, and a cancelled one has no
// effect. Its cost counts if it was told. Its running time is not known. [Result.Guided] is
// true of a suggestion once, for the result that came first.
//
// [Results.Completed] has outcomes only. An expired trial is not among them, even if its
// former holder told a result. [Results.CountLate] replaces a completed trial's outcome by
// the mean of it and of its late results.
//
// # Fidelity
//
// Reports of an objective are measurements of it at a lower fidelity, which depends on
// their step. As soon as a completed trial has reported, the inputs of the objectives'
// models have one more coordinate,
//
//	δ = max(log₂((S + 1)/(step + 1)), 0),   k((u, δ), (v, δ′)) = 1 + (k(u, v) − 1)·exp(−|δ − δ′|/ℓ_δ)
//
// with S the full step, which is the option max_step or the median of the last steps of
// completed trials. Outcomes are at δ = 0, at any step, and predictions are too. Without
// noise this is the autoregressive model of Kennedy and O'Hagan, Predicting the output from
// a complex computer code (2000). In it, earlier reports of a trial teach nothing beyond
// the last one. ℓ_δ is fitted with the other hyper-parameters, with the prior LogNormal(log
// 16, 1.2).
//
// Curves fall or rise, so a value is first converted to the outcome that it suggests. This
// is done level by level ⌊log₂(step + 1)⌋, from the outcome down. An affine map takes the
// median and the median absolute deviation of the values at one level to those at the next,
// over trials that have both, including pruned ones. The distance from there to the
// outcomes of completed trials is the noise of such values. A trial counts with its outcome
// and at most 4 reports, the last one and others at least 1.5 doublings apart. NaN, ±Inf
// and reports more than 12 doublings from S are left out. Of a running trial the latest 256
// reports are read, and they move its prediction as long as it runs. Completed trials
// without reports count as usual. Without reports, or with reports = ignore, the model is
// the one without δ.
//
// A pruned trial also counts as an outcome m + ρ(y − m), with y its last value, ρ its
// correlation with the outcome, and additional variance (1 + a)(1 − ρ²). Other trials at its place would be pruned
// as well, so without this outcome σ would never shrink there. Hyper-parameters are not
// fitted to this outcome, because the model computed it from them.
//
// [Engine.Forecast] gives the pruner "model" (package prune) the posterior at δ = 0 of a
// running trial with its own reports.
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
