package main

func Example() {
	main()
	// Output:
	// 1 <nil>
	// 2 <nil>
	// not asked
}
