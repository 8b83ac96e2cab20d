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
	//   400/s served, 599/s refused,  39ms each; limit 10
	//   374/s served, 626/s refused,  23ms each; limit 8
	//   390/s served, 610/s refused,  21ms each; limit 8
	// and come back: 16 workers, 1000 calls a second
	//   444/s served, 555/s refused,  20ms each; limit 10
	//   717/s served, 280/s refused,  24ms each; limit 16
	//   779/s served, 220/s refused,  21ms each; limit 16
}
