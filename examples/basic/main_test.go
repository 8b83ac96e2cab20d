package main

import (
	"fmt"
	"os"

	"github.com/penstock-go/penstock/api"
)

func Example() {
	defer api.SetDefault(nil)() // a fresh engine for this run

	if err := run(os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// order 1: <nil>
	// order 2: <nil>
	// order 3: penstock: flow rule "orders" blocked "GET /orders"
	//   kind flow, rule "orders", limit 2, retry within two minutes: true
	// mail: no such mailbox
	// items: 42 <nil>
	// GET /orders  2 passed, 1 blocked, 0 failed
	// count items  1 passed, 0 blocked, 0 failed
	// send mail    1 passed, 0 blocked, 1 failed
}
