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
	// 0s: first runs
	// 0s: second runs
	// 0s: patient waits in the queue
	// 0s: quitter waits in the queue
	// 0s: urgent waits in the queue
	// 0s: sixth is refused: penstock: isolation rule "isolation:render pdf" blocked "render pdf"
	// 4s: quitter gave up
	// first ends, and its permit goes to the first in the queue
	// 4s: urgent runs
	// urgent ends
	// 4s: patient runs
	// 4s: late waits in the queue
	// 14s: late is refused: penstock: isolation rule "isolation:render pdf" blocked "render pdf"
}
