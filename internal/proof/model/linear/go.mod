// Linearizability, and the library that checks it. A module of its own, so that nothing of it
// reaches those who require the engine.
module github.com/penstock-go/penstock/internal/proof/model/linear

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/penstock-go/penstock v0.0.0
	github.com/stretchr/testify v1.12.1
)

require (
	github.com/fsnotify/fsnotify v1.10.1 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.13.0 // indirect
	gopkg.in/yaml.v3 v3.0.1 // indirect
)

replace github.com/penstock-go/penstock => ../../../..
