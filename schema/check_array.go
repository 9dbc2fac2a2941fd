package schema

import (
	"cmp"
	"slices"
	"strconv"
)

// array checks the array at i against r.
func (c *check) array(r *arrayRule, i int) int {
	start := i
	if i = c.enter(i); i < 0 {
		return fail
	}
	count, contained := 0, 0
	if c.at(i) == ']' {
		c.depth--
		i++
	} else {
		for more := true; more; count++ {
			item := i
			if i = c.item(r, count, i); i < 0 {
				return fail
			}
			if r.hasContains && c.holds(r.contains, item) {
				contained++
			}
			if i, more = c.next(i, ']'); i < 0 {
				return fail
			}
		}
	}
	if !c.countItems(r, count) || r.hasContains && !c.countContained(r, contained) {
		return fail
	}
	if r.unique && count > 1 && !c.uniqueItems(start, count) {
		return fail
	}
	return i
}

func (c *check) item(r *arrayRule, index, i int) int {
	n := r.items
	if index < len(r.prefix) {
		n = r.prefix[index]
	}
	if c.explaining == nil {
		return c.value(n, i)
	}
	c.explaining.enter(strconv.Itoa(index))
	c.explaining.optional = false
	end := c.value(n, i)
	c.explaining.leave()
	return end
}

func (c *check) countItems(r *arrayRule, count int) bool {
	if count < r.minItems && !c.fault("must have at least %s (got %d)", plural(r.minItems, "item", "items"), count) {
		return false
	}
	return r.maxItems < 0 || count <= r.maxItems || c.fault("must have at most %s (got %d)", plural(r.maxItems, "item", "items"), count)
}

func (c *check) countContained(r *arrayRule, count int) bool {
	if count < r.minContains && !c.fault("must have at least %s that the schema under contains accepts (got %d)", plural(r.minContains, "item", "items"), count) {
		return false
	}
	return r.maxContains < 0 || count <= r.maxContains || c.fault("must have at most %s that the schema under contains accepts (got %d)", plural(r.maxContains, "item", "items"), count)
}

// hashedItem is the position of an item in its array, by the item's hash.
type hashedItem struct {
	hash  uint64
	index int
}

// uniqueItems checks that no two of the items of the array at i are equal.
func (c *check) uniqueItems(i, count int) bool {
	here := c.save()
	defer c.restore(here)
	c.trusted++
	var few [16]hashedItem
	items := few[:0]
	i = c.enter(i)
	for more := true; more; {
		end, hash := c.hash(i)
		if !c.spend(1 + (end-i)/16) {
			return false
		}
		items = append(items, hashedItem{hash, len(items)})
		i, more = c.next(end, ']')
	}
	slices.SortFunc(items, func(a, b hashedItem) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.index, b.index))
	})
	for k := 1; k < len(items); k++ {
		if items[k-1].hash == items[k].hash && !c.fault("must not have equal items (items %d and %d are)", items[k-1].index, items[k].index) {
			return false
		}
	}
	return true
}
