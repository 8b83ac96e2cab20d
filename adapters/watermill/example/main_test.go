package main

func Example() {
	main()
	// Output:
	// sent a mail
	// sent a mail
	// sent a mail
	// sent a mail
}
