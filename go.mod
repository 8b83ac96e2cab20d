module github.com/penstock-go/penstock

go 1.26.0

require (
	github.com/fsnotify/fsnotify v1.10.1
	github.com/stretchr/testify v1.12.1
	gopkg.in/yaml.v3 v3.0.1
)

require (
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.13.0 // indirect
)
