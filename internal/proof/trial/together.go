package trial

import "sync"

// Together calls f(0) to f(n-1), each on its own goroutine, and returns when all have returned. No
// call begins before every goroutine runs, so that the calls overlap.
func Together(n int, f func(i int)) {
	var begin, done sync.WaitGroup
	begin.Add(n)
	for i := range n {
		done.Go(func() {
			begin.Done()
			begin.Wait()
			f(i)
		})
	}
	done.Wait()
}
