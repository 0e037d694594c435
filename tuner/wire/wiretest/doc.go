// Package wiretest holds a small service in memory for tests of what lies
// between a caller and a service, and tests server and client against each
// other.
package wiretest
