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
	// second 1:  512 MiB in use, 100 of 120 exports
	// second 2: 1024 MiB in use, 100 of 120 exports
	// second 3: 1280 MiB in use,  71 of 120 exports
	// second 4: 1536 MiB in use,  43 of 120 exports
	// second 5: 1792 MiB in use,  15 of 120 exports
	// second 6: 1990 MiB in use,  10 of 120 exports
	// second 7: 1990 MiB in use,  10 of 120 exports
	// second 8:  600 MiB in use, 100 of 120 exports
	// second 9:  600 MiB in use, 100 of 120 exports
}
