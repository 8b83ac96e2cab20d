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
	// machine-root
	// ├─ batch              pass 1/s  block 0/s  rt 2ms  in-flight 0
	// │  └─ nightly export  pass 1/s  block 0/s  rt 2ms  in-flight 0
	// │     └─ sql orders   pass 2/s  block 1/s  rt 1ms  in-flight 0
	// └─ web                pass 5/s  block 7/s  rt 1ms  in-flight 0
	//    └─ GET /orders     pass 5/s  block 7/s  rt 1ms  in-flight 0
	//       └─ sql orders   pass 5/s  block 0/s  rt 1ms  in-flight 0
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
