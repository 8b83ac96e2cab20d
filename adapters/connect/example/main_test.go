package main

func Example() {
	main()
	// Output:
	// ann: <nil>
	// bob: <nil>
	// eve: <nil>
	// joe: resource_exhausted: the call was refused by a flow rule
}
