// Package bandit decides what to pull: kernel bandits with posteriors that stay
// affordable. It has exact GP-UCB, BKB, BBKB, mini-GP-Opt, Thompson sampling,
// and comparators that starve.
package bandit
