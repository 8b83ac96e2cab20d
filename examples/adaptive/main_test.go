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
	// a quiet time, in shadow mode: 16 workers, 500 calls a second
	//   498/s served,   0/s refused,  20ms each; limit 40
	//   500/s served,   0/s refused,  20ms each; limit 40
	//   500/s served,   0/s refused,  20ms each; limit 40
	// more comes than can be served: 16 workers, 840 calls a second
	//   798/s served,   0/s refused, 138ms each; limit 35
	//   800/s served,   0/s refused, 376ms each; limit 18
	//   800/s served,   0/s refused, 614ms each; limit 18
	// the rule is enforced: 16 workers, 1000 calls a second
	//   779/s served, 340/s refused, 139ms each; limit 16
	//   779/s served, 220/s refused,  21ms each; limit 16
	//   779/s served, 220/s refused,  21ms each; limit 16
	// eight of the workers go: 8 workers, 1000 calls a second
	//   401/s served, 599/s refused,  39ms each; limit 14
	//   378/s served, 622/s refused,  24ms each; limit 8
	//   390/s served, 609/s refused,  21ms each; limit 8
	// and come back: 16 workers, 1000 calls a second
	//   411/s served, 588/s refused,  20ms each; limit 10
	//   704/s served, 296/s refused,  24ms each; limit 16
	//   783/s served, 216/s refused,  21ms each; limit 16
}
