// Package explain says what a model has learned about the parameters of a study. [Along]
// has its predictions along one parameter.
package explain
