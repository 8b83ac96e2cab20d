// Package schedules runs concurrent code under a scheduler of its own, one interleaving
// after another: so many at random, or all there are.
//
// The engine's packages take what goroutines share from package internal/shared.
// Built with the tag sim, each of those types asks the [Schedule] at work before
// every access who goes on. The callers of a schedule are coroutines on one
// goroutine, so nothing else decides: the same seed gives the same interleaving.
// That is a sound picture of the real thing as long as the code is free of data
// races, since Go's atomics are sequentially consistent: so the race detector runs
// over the same code in the ordinary tests.
//
// A test makes a machine for each schedule, in whatever state it likes, starts a
// few callers, and says what must hold in the end:
//
//	func TestSimSemaphore(t *testing.T) {
//		sim.Random(t, func(s *sim.Schedule) {
//			var g meter.Semaphore
//			for range 3 {
//				s.Go(func() {
//					if g.TryAcquire(0, 1, 1) {
//						g.Release(0, 1)
//					}
//				})
//			}
//			s.Check(func() {
//				if g.Held() != 0 {
//					s.Failf("%d held in the end", g.Held())
//				}
//			})
//		})
//	}
//
// Such tests are named TestSim, in files named ..._sim_test.go with the build tag; CI runs
// them all. When one fails it prints the schedule, step by step, and the flags that
// run it again:
//
//	go test -tags sim -run '^TestSimSemaphore$' ./internal/meter -sim.seed=7 -sim.at=4711
package schedules
