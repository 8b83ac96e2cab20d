package clustersim

import (
	"testing"

	"github.com/penstock-go/penstock/internal/proof/figure"
)

// In every failure, the excess over the limit stays within the bounds in docs/cluster.md.
func TestTroubles(t *testing.T) {
	seeds := figure.Size(1, 2, 5, 50)
	for _, tr := range Troubles {
		t.Run(tr.Name, func(t *testing.T) {
			if worst := tr.Worst(seeds); worst > tr.Bound {
				t.Errorf("%.2f of the limit, bound %.2f", worst, tr.Bound)
			} else {
				t.Logf("%.3f of the limit, bound %.3f", worst, tr.Bound)
			}
		})
	}
}
