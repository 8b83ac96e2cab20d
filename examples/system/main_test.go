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
	// gate, quarters of a second:
	// passed      50   50   50   50  300    0    0    0  300    0    0    0  300    0    0    0
	// in flight    2    2    2    2  285  251   52    0  284  250   40    0  284  250   40    0
	// steady, quarters of a second:
	// passed      50   50   50   50  300    0    0   75  100  100  100  100  100  100  100  100
	// in flight    2    2    2    2  285  251   52    3    3    3    3    3    3    3    3    3
}
