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
	//     0s  12 calls: 10 pass
	//  600ms  an ordinary call: false
	//  600ms  a prioritized call ...
	//  1.02s  ... has waited for the next bucket: true
	//  1.02s  12 calls: 9 pass, for one of the 10 was borrowed
	//  1.02s  newsletter 0 leaves, and five queue: newsletter 1, newsletter 2, newsletter 3, receipt 1, receipt 2
	//  1.12s  receipt 1
	//  1.22s  newsletter 1
	//  1.32s  receipt 2
	//  1.42s  newsletter 2
	//  1.52s  newsletter 3
}
