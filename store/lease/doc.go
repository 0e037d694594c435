// Package lease makes a process one of the servers that share a [store.Shared]. Each
// study belongs to one server at a time. The leases of trials are in package tuner/study.
//
//	m, err := lease.Join(ctx, shared, lease.Options{Address: "tuner-1.example.org:7070"})
//	…
//	t := engine.Open(m, options)
//
// # The lease of a server
//
// [Join] registers the server and renews its lease every fifth of [Options.TTL]. The server
// counts its lease from the moment before it sent the last successful renewal, and for four
// fifths of the TTL only, see [Member.Alive]. It measures that time by a clock that
// continues while the machine is suspended, where the system has one.
//
// The others take the lease to be over when they have seen no renewal for the whole TTL by
// their own monotonic clocks, see [store.Lookout]. They begin to count after the renewal
// was done, and the server before. So the server knows first, unless the rates of two
// clocks differ by a fifth. What time it is, at a server or at the store, does not matter,
// and neither does a failover to a copy of the store that knows only older renewals.
//
// No clock decides who may write. A claim has an epoch, the store compares it in the same
// step as it writes, and a burial compares the renewal that was seen in the same way. So
// two servers never write to one study, even if their clocks are wrong. Then a server could
// only answer from memory what is old.
//
// A lease that is over is not lost. While no other server has buried this one, the next
// renewal begins it anew, and the studies stay here. So when a database was away, all
// servers continue.
//
// # Burying
//
// A server that wants a study whose owner's lease is over buries the owner first. Time in
// which it was not alive itself, or did not reach the store, does not count. Otherwise the
// first server that reaches a database after an outage would bury the others. A buried
// server learns it from its next renewal, see [Member.Buried], and must end.
//
// # Studies
//
// [Member.Acquire] claims a study, and every commit and deletion is made under the claim.
// A store refuses them with a [store.FencedError] if another claim was made since.
// [Member.Close] gives all studies back at once, by removing the server.
package lease
