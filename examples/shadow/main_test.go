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
	// shadow:   8 calls,  8 pass,  0 would be refused
	// shadow:  12 calls, 12 pass,  2 would be refused
	// shadow:  20 calls, 20 pass, 10 would be refused
	// enforce: 20 calls, 10 pass, 10 are refused
}
