// Package storetest is the suite of tests that every [store.Store] passes. Its events are those
// of package eventtest.
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Harness { … })
//	}
//
// The suite tests the contract of package store. Acknowledged events are there, whole, in order,
// and share no memory with the caller. A refused call has no effect. Ids are never used again. A
// caller that loses a race gets an error. The suite ends with random commands against a model
// made of a few maps. If the store is durable, they include closing and reopening it. Faults of
// the medium are for each store's own tests.
package storetest
