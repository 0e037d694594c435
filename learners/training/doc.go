// Package training takes a learner by its name from a table to a model. The command line and
// the tuner of the learners use it, so that a hyper-parameter has one name, default and range.
//
//	Table ──Prepare──► Data ──Algorithm.Estimator(Values, Data)──► Estimator.Fit
//	                     │                                              │
//	                     └───────────────── Evaluate ◄── Model ◄────────┘
//
// Encodings and length scales are fitted to training rows only. Equal table, split and values
// give equal models, to the bit.
package training
