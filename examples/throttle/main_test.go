package main

import (
	"fmt"
	"os"
)

func Example() {
	if err := run(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// one call after the other:
	//   call 1 runs at 0s
	//   call 2 runs at 100ms
	//   call 3 runs at 200ms
	//   call 4 runs at 300ms
	//   call 5 runs at 400ms
	// seven at once, a second later:
	//   call 1 runs at once
	//   call 2 waits for 100ms
	//   call 3 waits for 200ms
	//   call 4 waits for 300ms
	//   call 5 waits for 400ms
	//   call 6 is refused: the queue is full
	//   call 7 is refused: the queue is full
}
