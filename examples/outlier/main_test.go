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
	// all work              a 10, b 10, c 10, failed  0, ejected: nobody
	// c fails               a 12, b 13, c  5, failed  5, ejected: c
	//                       a 15, b 15, c  0, failed  0, ejected: c
	//                       a 15, b 14, c  1, failed  1, ejected: c
	//                       a 15, b 15, c  0, failed  0, ejected: c
	// b fails as well       a 14, b 15, c  1, failed 16, ejected: c
	//                       a 15, b 15, c  0, failed 15, ejected: c
	// all work again        a 13, b 12, c  5, failed  0, ejected: nobody
	//                       a 10, b 10, c 10, failed  0, ejected: nobody
	//                       a 10, b 10, c 10, failed  0, ejected: nobody
}
