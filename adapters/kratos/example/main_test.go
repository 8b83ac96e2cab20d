package main

func Example() {
	main()
	// Output:
	// ann: 200 OK
	// bob: 200 OK
	// eve: 200 OK
	// joe: 429 Too Many Requests
}
