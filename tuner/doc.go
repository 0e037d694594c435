// Package tuner is the interface of the service, with its types and errors. The service
// keeps studies in a store, suggests configurations and takes results.
//
// [Service] has the calls. Package tuner/engine implements it in the process and package
// tuner/client over the network. The commands and the states of studies and trials are
// those of package tuner/study. [CodeOf] classifies the errors.
package tuner
