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
	// POST /refunds  back-office  may
	// POST /refunds  crawler      may not: refunds
	// POST /refunds  balancer     may not: refunds
	// POST /refunds  (nobody)     may not: refunds
	// GET /orders    back-office  may
	// GET /orders    crawler      may not: no-crawler
	// GET /orders    balancer     may
	// GET /orders    (nobody)     may
	// GET /health    back-office  may not: internal
	// GET /health    crawler      may not: internal
	// GET /health    balancer     may
	// GET /health    (nobody)     may
}
