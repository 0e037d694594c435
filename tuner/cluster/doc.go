// Package cluster makes several servers over one store look like one [tuner.Service].
// Each server answers every call. A study belongs to one server at a time (see package
// store/lease), and the others forward its calls there.
//
//	member, err := lease.Join(ctx, database, lease.Options{Address: "tuner-1.example.org:7070"})
//	…
//	s := cluster.New(engine.Open(member, options), member, cluster.Options{Dial: …})
//
// A call for a study goes to the local service first, which claims the study if no
// other server has it. If one has, the error names it. The call is forwarded there, and
// so are later calls for the study, until that server refuses one or cannot be reached.
// Each command has a request id, so a call that was sent to two servers has one effect.
//
// A server answers from memory, and another one may have its studies once its lease is
// over. So it looks at its lease before and after each call. A call after that is
// unavailable, and a call that was running has an unknown outcome if it may have changed
// something. Clients send both again.
//
// Lists of studies come from the store and are complete at every server. Backups need
// the tools of the database.
package cluster
