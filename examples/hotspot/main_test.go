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
	// ten calls of each user in one second:
	//   ann    3 pass
	//   bob    3 pass
	//   batch  8 pass
	//   banned 0 pass
	// a call about several users takes of each, or of none:
	//   [ann bob]: passes
	//   [ann banned]: penstock: hotspot rule "users" blocked "GET /orders"
	// one report of a kind at once:
	//   yearly:       passes
	//   yearly again: penstock: hotspot rule "reports" blocked "GET /report"
	//   daily:        passes
	// the hottest users:
	//   "ann"    passed 4, refused 7
	//   "banned" passed 0, refused 11
	//   "bob"    passed 4, refused 7
	//   "batch"  passed 8, refused 2
}
