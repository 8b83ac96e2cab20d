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
}
