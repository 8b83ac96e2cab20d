package main

func Example() {
	main()
	// Output:
	// ann /orders: 200 OK
	// ann /orders/7: 200 OK
	// ann /carts/7/items: 429 Too Many Requests
	// bob /orders: 200 OK
	// ann /search: 200 OK
}
