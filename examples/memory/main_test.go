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
	// second  2:  512 MiB in use, 100 of 120 exports
	// second  4: 1024 MiB in use, 100 of 120 exports
	// second  6: 1280 MiB in use,  71 of 120 exports
	// second  8: 1536 MiB in use,  43 of 120 exports
	// second 10: 1792 MiB in use,  15 of 120 exports
	// second 12: 1990 MiB in use,  10 of 120 exports
	// second 14: 1990 MiB in use,  10 of 120 exports
	// second 16:  600 MiB in use, 100 of 120 exports
	// second 18:  600 MiB in use, 100 of 120 exports
}
