module github.com/penstock-go/penstock/adapters/nethttp/browser

go 1.26.0

require (
	github.com/penstock-go/penstock v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.13.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/penstock-go/penstock => ../../..
