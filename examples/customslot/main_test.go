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
	// acme: penstock: blocked "GET /carts": no connection is free
	// slow: GET /orders took 150ms
	// acme: served
	// globex: penstock: blocked "GET /orders": tenant is suspended (kind custom)
}
