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
	// second  0: 100 asked, 100 passed,  0 failed,   0 refused
	// second  1: 100 asked, 100 passed,  0 failed,   0 refused
	//   after 2.49s, users: closed -> open
	// second  2: 100 asked,  50 passed, 50 failed,  50 refused
	// second  3: 100 asked,   0 passed,  0 failed, 100 refused
	// second  4: 100 asked,   0 passed,  0 failed, 100 refused
	// second  5: 100 asked,   0 passed,  0 failed, 100 refused
	// second  6: 100 asked,   0 passed,  0 failed, 100 refused
	//   after 7.49s, users: open -> halfOpen
	//   after 7.49s, users: halfOpen -> recovering
	// second  7: 100 asked,   2 passed,  0 failed,  98 refused
	// second  8: 100 asked,   1 passed,  0 failed,  99 refused
	// second  9: 100 asked,   5 passed,  0 failed,  95 refused
	// second 10: 100 asked,  10 passed,  0 failed,  90 refused
	// second 11: 100 asked,  30 passed,  0 failed,  70 refused
	// second 12: 100 asked,  50 passed,  0 failed,  50 refused
	//   after 13.49s, users: recovering -> closed
	// second 13: 100 asked,  76 passed,  0 failed,  24 refused
	//   after 14s, users: closed -> forcedOpen
	// penstock: breaker rule "breaker:users" blocked "users"
}
