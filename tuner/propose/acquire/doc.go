// Package acquire chooses the configurations that a study tries next, by what its model
// says (package model), and the trials that are best.
//
// A [Chooser] makes suggestions ([Chooser.Propose]), names the best trials
// ([Chooser.Recommend]), and says how the model stands ([Chooser.Diagnose]). It keeps
// two folds of the results: the elite, near which it looks, and the size of the trust
// region.
//
//	wish: exploit, explore, weights, trust region, thrift
//	  └─► scorer: μ + b·σ, or what stands for it
//	        └─► bandit.Search on the space ─► candidates ─► choice: duplicates, known
//
// # The score
//
// A suggestion maximises μ + b·σ with b = √(c·d·log(2t + 1)), where d is the mean number
// of active parameters and c = 0.05. Every fourth trial maximises μ. With beta = theory, b
// is that of thesis Theorem 21 (L. Carratino, Scaling kernel methods). Pending trials
// shrink σ. Where feasibility is modelled, the logarithm of the probability that a
// configuration is feasible is added.
//
// With several objectives every suggestion draws weights for an augmented Chebyshev
// scalarisation of the upper bounds (Knowles, ParEGO, 2006).
//
// With the option cost a suggestion maximises log(u − μ*) − p·log c in place of
// the bound u, that is, (u − μ*)/cᵖ, with μ* the best posterior mean and c the
// predicted cost. p is 1 or, if the study has a MaxCost, the part of it that is left
// (cost cooling: Lee, Perrone, Archambeau and Seeger, Cost-aware Bayesian optimization,
// 2020). Exploiting suggestions ignore costs.
//
// # The search
//
// A space of up to 2048 configurations is looked at whole. Else a [bandit.Search] scores
// 512 Sobol' points and 192 mutations of the best results, then smaller mutations of the
// best candidates, and climbs where the score is μ + b·σ and coordinates are
// continuous. From 200 inducing points on there are fewer candidates. With several
// objectives it mutates results of the front, of which those are kept that dominate the
// most hypervolume (SMS-EMOA: Beume, Naujoks and Emmerich, 2007).
//
// # The trust region
//
// From 5 ordered coordinates on (option trust_region), with one objective, the
// candidates are within a trust region (TuRBO: Eriksson, Pearce, Gardner, Turner and
// Poloczek, Scalable global optimization via local Bayesian optimization, 2019) around
// the best posterior mean, with sides in proportion to the length scales. Coordinates of
// conditional parameters and categories are free in it, and a space that is looked at
// whole has none. Its size is a fold of the results: three improvements in a row double
// it, max(4, d) suggestions in a row without one halve it, and below 1/128 it begins
// anew. Every 15 suggestions in a row without an improvement double b there, up to
// eightfold (option patience).
//
// # The gap
//
// The gap that may end a study is the largest upper bound that was found anywhere less
// the largest lower one of a result, before pending trials. It is no guarantee. It would
// be one with beta = theory, as long as all points are inducing, for functions whose norm
// in the model's space is 1 at most.
//
// # Duplicates
//
// A configuration that the study has, whatever came of it, is passed over as long
// as there is another (on_duplicate = resample). Then it is suggested again, or
// the study ends (reuse: what is known stands, nothing is run twice). With replicate it
// may be suggested at any time.
//
// With one objective and next to no noise (ξ² ≤ 1e-4) the same holds for a candidate
// that is as good as a repetition, unless replicate: within 0.1 length scales of an
// inducing point, σ < 0.6ξ, and a mean that exceeds the best by less than 0.6ξ. The best
// candidate that is not so is suggested. Suggestions that exploit do not look at this.
//
// # The best trials
//
// Of one objective the best measured of those trials is recommended whose posterior
// mean is within one standard deviation of the best mean (option recommend =
// plausible). The mean alone takes for luck what the model does not explain, and the
// measurement alone takes luck for skill. Of several objectives the trials are
// recommended whose means no other's dominate. Only completed trials are recommended, and
// those that keep to the constraints come first.
//
// # Useful workers
//
// Useful workers are those of BBKB's rule 1 + Σσ²/ξ² ≤ 2.
//
// # Costs
//
// A suggestion costs O(candidates·m(m + d)) for m inducing points, and a climb some
// 4·10⁶ multiplications.
package acquire
