// Package wiretest has a small service in memory for tests of the layers between a caller
// and a service. It also tests server and client against each other.
package wiretest
