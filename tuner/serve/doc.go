// Package serve runs the server that the command tuner serve starts, in any Go program.
//
// [Run] opens the file or database of a [Config], puts the service over it, and serves it
// over gRPC and, if the Config says so, over HTTP with the page. It also makes backups, has
// metrics and forwards calls between several servers of a database. It puts packages
// together, and has no logic of a request. What is the process's own stays with the caller:
// signals, the memory limit and the settings of the garbage collector.
package serve
