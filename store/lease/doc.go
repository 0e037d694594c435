// Package lease makes a process one of the servers that share a [store.Shared]. Each
// study belongs to one server at a time. The leases of trials are in package tuner/study.
//
//	m, err := lease.Join(ctx, shared, lease.Options{Address: "tuner-1.example.org:7070"})
//	…
//	t := engine.Open(m, options)
//
// [Join] registers the server and renews its lease every fifth of [Options.TTL]. The server
// counts its lease from the moment before it sent the last successful renewal, and for four
// fifths of the TTL only, by a clock that continues while the machine is suspended. The
// others take the lease to be over when they have seen no renewal for the whole TTL by
// their own monotonic clocks, see [store.Lookout]. So the server knows first, unless the
// rates of two clocks differ by a fifth. What time it is does not matter.
//
// No clock decides who may write. A claim has an epoch, the store compares it in the same
// step as it writes, and a burial compares the renewal that was seen in the same way. So
// two servers never write to one study, even if their clocks are wrong.
//
// A server that wants a study whose owner's lease is over buries the owner first. Time in
// which it was not alive itself, or did not reach the store, does not count. Otherwise the
// first server to reach a database that was away would bury all others. While no other
// server has buried this one, its next renewal begins the lease anew. A server that was
// buried must end, see [Member.Buried].
package lease
