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
	// 0s: patient waits in line
	// 0s: quitter waits in line
	// 0s: urgent waits in line
	// 0s: sixth is refused: penstock: isolation rule "isolation:render pdf" blocked "render pdf"
	// 4s: quitter gave up
	// first ends, and its permit goes to the first in line
	// 4s: urgent runs
	// urgent ends
	// 4s: patient runs
	// 4s: late waits in line
	// 14s: late is refused: penstock: isolation rule "isolation:render pdf" blocked "render pdf"
}
