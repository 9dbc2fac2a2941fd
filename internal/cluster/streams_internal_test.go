package cluster

import "testing"

// The stream with the fewest copies decides whether there is redundancy.
func TestFewestCopies(t *testing.T) {
	c := new(Cluster)
	for _, copies := range []int{3, 1, 3} {
		c.noteStream(copies, false)
	}
	if c.copies != 1 {
		t.Errorf("%d copies", c.copies)
	}
}
