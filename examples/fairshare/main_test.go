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
	// first come, first served: heavy heavy heavy heavy heavy heavy heavy heavy heavy heavy light light
	// fair shares:              heavy heavy light heavy light heavy heavy heavy heavy heavy heavy heavy
}
