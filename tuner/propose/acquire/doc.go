// Package acquire chooses the next configurations of a study from its model (package
// model), and recommends the best trials.
//
// A [Chooser] makes suggestions ([Chooser.Propose]), recommends the best trials
// ([Chooser.Recommend]), and describes the state of the model ([Chooser.Diagnose]). It
// keeps four folds of the results. They are the elite, near which it searches, the size of the
// trust region, the results for quadratics, and the evolution.
//
// The policy is a list of sources (sources.go). The first one that may speak and has a proposal
// makes the suggestion. The last one always has one,
//
//	turn: exploit, explore, weights, trust region, cost
//	  └─► scorer: μ + b·σ, or what stands for it
//	        └─► bandit.Search on the space ─► candidates ─► choice: duplicates, known
//
// The mathematics of sources that needs no space or model is in package bandit. It is expected
// improvement, the size of a trust region, local quadratics, CMA-ES and hypervolume.
//
// # Score
//
// A suggestion maximizes μ + b·σ with b = √(c·d·log(2t + 1)), where d is the mean number of
// active parameters and c = 0.05. Every fourth trial maximizes μ. With beta = theory, b is
// that of Theorem 21 of Carratino (2020). Pending trials shrink σ. Where failures or
// metrics with limits are modelled, the logarithms of the probabilities that a configuration
// succeeds and keeps each limit are added.
//
// With several objectives every suggestion draws weights for an augmented Chebyshev
// scalarisation of the upper bounds (Knowles, ParEGO, 2006).
//
// With the option cost a suggestion maximizes log(u − μ*) − p·log c in place of the bound
// u. This is (u − μ*)/cᵖ, with μ* the best posterior mean and c the predicted cost. If the
// study has a MaxCost, p is the share of it that is left, else 1 (cost cooling: Lee,
// Perrone, Archambeau and Seeger, Cost-aware Bayesian optimization, 2020). Exploiting
// suggestions ignore costs.
//
// # Search
//
// In a space of up to 2048 configurations all are scored. Otherwise a [bandit.Search]
// scores 512 Sobol' points and 192 mutations of the best results, then smaller mutations of
// the best candidates. It climbs where the score is μ + b·σ, with limits or without, and
// coordinates are continuous. From 200 inducing points on there are fewer candidates. With
// several objectives it mutates results of the front. Of a large front, the results that dominate the most
// hypervolume are kept (SMS-EMOA: Beume, Naujoks and Emmerich, 2007).
//
// # Trust region
//
// From 5 ordered coordinates on (option trust_region), with one objective, the candidates
// are within a trust region (TuRBO: Eriksson, Pearce, Gardner, Turner and Poloczek,
// Scalable global optimization via local Bayesian optimization, 2019). It lies around the
// best posterior mean, with sides in proportion to the length scales. Coordinates of
// conditional parameters and categories are free in it. A space of which all configurations
// are scored has none. Its size is a fold of the results. Three improvements in a row
// double it, max(4, d) suggestions in a row without one halve it, and below 1/128 it starts
// again.
//
// # Quadratics
//
// Where a quadratic regression explains the best results well, suggestions that exploit take its
// best point (option quadratic), unless it is more likely to fail than not. It sees a narrow valley
// across the coordinates sooner than the model.
//
// # Pending trials
//
// Pending trials shrink σ, and with one objective suggestions keep a distance from them. Those that
// exploit keep less where the best results are close to each other. Where failures or limits are
// modelled, so do others of every second trial.
//
// # Evolution
//
// From 200 results on (option evolve_from), while suggestions of the model do not improve on the
// best, some suggestions are samples of CMA-ES, whose state is a fold of the results. A rugged
// function is noise to the model, and CMA-ES only compares values.
//
// # Gap
//
// The gap that may end a study is the largest upper bound found anywhere minus the largest
// lower bound of a result, before pending trials. Where failures or metrics with limits are
// modelled, it leaves out configurations whose confidence intervals are outside the limits. It
// is no guarantee. With beta = theory it
// would be one, as long as all points are inducing, for functions whose norm in the model's
// space is 1 at most.
//
// # Duplicates
//
// A configuration that the study has, with any outcome, is skipped as long as there is
// another (on_duplicate = resample). After that it is suggested again. With reuse the study
// ends instead, and no configuration is run twice. With replicate a configuration may be
// suggested again at any time.
//
// A candidate that is the same up to rounding, within 1e-6 of a trial in each coordinate of
// the cube, is treated alike, unless replicate. With one objective and almost no noise (ξ² ≤
// 1e-4) so is one that is nearly a repetition, apart from suggestions that exploit. It is
// within 0.1 length scales of an inducing point, has σ < 0.6ξ, and a mean that exceeds the
// best by less than 0.6ξ. The best other candidate is suggested.
//
// # Best trials
//
// For one objective, the recommended trial has the best measurement among the trials whose
// posterior mean is within one standard deviation of the best mean (option recommend =
// plausible). The mean alone treats effects that the model does not explain as luck. The
// measurement alone treats luck as merit. Repeated measurements show which it is
// ([model.Repeats]), and a suggestion of phase repeat makes them where there are none. For several objectives, the trials whose means no
// other dominates are recommended. Only completed trials are recommended, and those that
// keep the constraints come first.
//
// # Useful workers
//
// The number of useful workers follows BBKB's rule 1 + Σσ²/ξ² ≤ 2.
//
// # Costs
//
// A suggestion costs O(candidates·m(m + d)) for m inducing points, and a climb about 4·10⁶
// multiplications.
package acquire
