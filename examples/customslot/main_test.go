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
	// slow: GET /orders took 150ms
	// acme: served
	// globex: penstock: blocked "GET /orders": tenant is suspended (kind custom)
}
