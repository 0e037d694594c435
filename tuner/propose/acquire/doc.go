// Package acquire chooses the next configurations of a study from its model (package
// model), and recommends the best trials.
//
// A [Chooser] makes suggestions ([Chooser.Propose]), recommends the best trials
// ([Chooser.Recommend]), and describes the state of the model ([Chooser.Diagnose]). It
// keeps two folds of the results. They are the elite, near which it searches and which quadratics
// are fitted to, and the evolution.
//
// The policy is a list of sources (sources.go). The first one that may speak and has a proposal
// makes the suggestion. The last one always has one,
//
//	turn: exploit, explore, weights, cost
//	  └─► scorer: μ + b·σ, or what stands for it
//	        └─► bandit.Search on the space ─► candidates ─► choice: duplicates, known
//
// The mathematics of sources that needs no space or model is in package bandit. It is expected
// improvement, local quadratics and CMA-ES.
//
// docs/model.md has the score, the sources, the choice among candidates, and the best trial, with
// the papers.
//
// # Invariants
//
//   - A suggestion is a function of the study up to a position and of the trial's number. Its
//     random numbers are those of the trial.
//   - Each suggestion of a batch has the ones before it as pending trials.
//   - A candidate that the study has, up to rounding, is suggested only as on_duplicate says.
//   - The gap is no guarantee. With beta = theory it would be one, as long as all points are
//     inducing, for functions whose norm in the model's space is 1 at most.
//
// # Costs
//
// A suggestion costs O(candidates·m(m + d)) for m inducing points, and a climb about 4·10⁶
// multiplications.
package acquire
