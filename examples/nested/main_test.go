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
	// acme     passed
	// acme     passed
	// acme     passed
	// acme     blocked
	// globex   passed
	// globex   blocked
	// globex   blocked
	// globex   blocked
	// initech  passed
	// initech  blocked
	// initech  blocked
	// initech  blocked
	// export   passed
	// export   passed
	// export   blocked
	//
	//                       last second       last minute           in
	// machine-root          pass  block   rt  pass  block   rt  flight
	// ├─ batch                 1      0  2ms     1      0  2ms       0
	// │  └─ nightly export     1      0  2ms     1      0  2ms       0
	// │     └─ sql orders      2      1  1ms     2      1  1ms       0
	// └─ web                   5      7  1ms     5      7  1ms       0
	//    └─ GET /orders        5      7  1ms     5      7  1ms       0
	//       └─ sql orders      5      0  1ms     5      0  1ms       0
	//
	// flow rule flow:GET /orders:origin=other: refused 6 calls
	// flow rule flow:GET /orders:origin=acme: refused 1 call
	// flow rule flow:sql orders:chain=batch: refused 1 call
	//
	// GET /orders by caller:
	//   acme     3 passed, 1 blocked
	//   globex   1 passed, 3 blocked
	//   initech  1 passed, 3 blocked
}
