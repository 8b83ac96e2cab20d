// Package schedules runs concurrent code under its own scheduler, one interleaving after another: a
// number of random ones, or all of them.
//
// The engine's packages take shared state from package internal/shared. Built with the tag sim,
// each of its types asks the current [Schedule] before every access which caller continues. The
// callers of a schedule are coroutines on one goroutine, so nothing else decides: the same seed
// gives the same interleaving. This is a sound model of real execution as long as the code has no
// data races, since Go's atomics are sequentially consistent; the ordinary tests run the same code
// under the race detector.
//
// A test sets up a machine for each schedule, in any state, starts a few callers, and states what
// must hold at the end:
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
// Such tests are named TestSim, in files named ..._sim_test.go with the build tag; CI runs them
// all. A failing test prints the schedule, step by step, and the flags that run it again:
//
//	go test -tags sim -run '^TestSimSemaphore$' ./internal/meter -sim.seed=7 -sim.at=4711
package schedules
