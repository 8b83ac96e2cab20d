package isolation

import "github.com/penstock-go/penstock/core/spec"

// checkShed refuses orders that can't be.
func (r Rule) checkShed() error {
	switch err := spec.CheckShed(r.Shed, spec.Floors{}); {
	case err != nil || r.Shed == spec.ShedNone:
		return err
	case r.Shared():
		return spec.BadField("shed", "has no meaning for cluster, which has no queue: remove shed or cluster")
	case r.MaxQueue == 0:
		return spec.BadField("shed", "needs a queue, where calls of lower levels wait: set maxQueue and maxWait")
	}
	return nil
}

// checkShare refuses shares that can't be.
func (r Rule) checkShare() error {
	switch s := &r.Share; {
	case !s.Given():
		return nil
	case r.Shared():
		return spec.BadField("share", "has no meaning for cluster, which has no queue: remove share or cluster")
	case r.MaxQueue == 0:
		return spec.BadField("share", "needs a queue, where calls wait for their part: set maxQueue and maxWait")
	default:
		return s.Check(r.MaxQueue, "maxQueue, ")
	}
}
