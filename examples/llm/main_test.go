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
	//                                          refused by rule
	// minute  answered  cut off  broken  left  calls  out  gold  others  budget
	//      1        52        0       0     8     19    0     0       0       0
	//      2        40       11       5     2     33   15     4       3       0
	//      3        47        2       3     3      3   13     1       7       0
	//      4        54        0       0     4     37    0     0       0       0
	//      5        46        2       3     4     17    0     0      10       0
	//      6        41        6       7     4     19    7     2       4       0
	//      7        44        0       3     8     32    0     0       0       0
	//      8        49        0       2     5     26    0     0       3       0
	//      9        21        2       1     1      5    0     0       4      61
	//     10         0        0       0     0      0    0     0       0       0
	// unit      reserved     used  given back  overdrawn  refused     gold     free
	// in          478969   428542       50427          0   266663   303249   125293
	// out         304875   214236       90929        290   165125   150909    63327
	// microUSD   5945606  4499166     1446556        116  3242799  3173382  1325784
}
