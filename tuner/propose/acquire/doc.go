// Package acquire chooses the next configurations of a study from its model (package
// model), and recommends the best trials. docs/model.md has the score, the sources, the choice
// among candidates, and the best trial, with the papers.
//
// A [Chooser] keeps two folds of the results, the elite, near which it searches, and the evolution.
// The policy is a list of sources (sources.go). The last one always has a proposal,
//
//	turn: exploit, explore, hypervolume, cost
//	  └─► scorer: μ + b·σ, or what stands for it
//	        └─► bandit.Search on the space ─► candidates ─► choice: duplicates, known
//
// A suggestion is a function of the study up to a position and of the trial's number, whose
// random numbers it has. Each of a batch has the ones before it as pending trials.
package acquire
