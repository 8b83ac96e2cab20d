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
	//      2        40       11       5     2     33    9    10       3       0
	//      3        47        2       3     3      3   11     3       7       0
	//      4        52        1       1     4     36    0     0       1       0
	//      5        48        1       3     4     17    0     0       9       0
	//      6        43        3       6     4     20    9     2       3       0
	//      7        46        0       4     8     30    0     0       3       0
	//      8        46        1       2     3     26    0     0       4       0
	//      9        19        5       1     1      0    9     2       0      60
	//     10         0        0       0     0      0    0     0       0       0
	// tenant  unit      reserved     used  given back  overdrawn  refused
	// gold    in          311778   307405       12014       7641   166312
	// gold    out         218400   151615       67025        240   101400
	// gold    microUSD   4226334  3196440     1031613       1719  1986936
	// free    in          118513   115680        5638       2805   101168
	// free    out          91700    63678       28216        194    67500
	// free    microUSD   1728039  1302210      427083       1254  1289004
	// all     in          430291   423085       17652      10446   267480
	// all     out         310100   215293       95241        434   168900
	// all     microUSD   5954373  4498650     1458696       2973  3275940
}
