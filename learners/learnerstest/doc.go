// Package learnerstest has the tests that every learners.Estimator must pass,
// and the data for them.
//
//	func TestConformance(t *testing.T) {
//		learnerstest.Run(t, learnerstest.Case{
//			New:     func() learners.Estimator { return falkon.Params{…} },
//			Invalid: []learners.Estimator{falkon.Params{Lambda: -1, …}},
//		})
//	}
package learnerstest
