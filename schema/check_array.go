package schema

import (
	"cmp"
	"slices"
	"strconv"
)

// checkArray checks the array at i against r. nil accepts any array.
func (c *check) checkArray(r *arrayRule, i int) int {
	if r == nil {
		return c.passValue(i)
	}
	start := i
	if i = c.enterNested(i); i < 0 {
		return fail
	}
	count, contained := 0, 0
	if c.byteAt(i) == ']' {
		c.depth--
		i++
	} else {
		for more := true; more; count++ {
			item := i
			if i = c.checkItem(r, count, i); i < 0 {
				return fail
			}
			if r.hasContains && c.acceptsValue(r.contains, item) {
				contained++
			}
			if i, more = c.readSeparator(i, ']'); i < 0 {
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

func (c *check) checkItem(r *arrayRule, index, i int) int {
	n := r.items
	if index < len(r.prefix) {
		n = r.prefix[index]
	}
	if c.explaining == nil {
		return c.checkValue(n, i)
	}
	c.explaining.enterPath(strconv.Itoa(index))
	c.explaining.optional = false
	end := c.checkValue(n, i)
	c.explaining.leavePath()
	return end
}

func (c *check) countItems(r *arrayRule, count int) bool {
	if count < r.minItems && !c.addFault("must have at least %s (got %d)", plural(r.minItems, "item", "items"), count) {
		return false
	}
	return r.maxItems < 0 || count <= r.maxItems || c.addFault("must have at most %s (got %d)", plural(r.maxItems, "item", "items"), count)
}

func (c *check) countContained(r *arrayRule, count int) bool {
	if count < r.minContains && !c.addFault("must have at least %s that the schema under contains accepts (got %d)", plural(r.minContains, "item", "items"), count) {
		return false
	}
	return r.maxContains < 0 || count <= r.maxContains || c.addFault("must have at most %s that the schema under contains accepts (got %d)", plural(r.maxContains, "item", "items"), count)
}

// hashedItem is the position of an item in its array, by the item's hash.
type hashedItem struct {
	hash  uint64
	index int
}

// uniqueItems checks that no two of the items of the array at i are equal.
func (c *check) uniqueItems(i, count int) bool {
	saved := c.saveState()
	defer c.restoreState(saved)
	c.trusted++
	var few [16]hashedItem
	items := few[:0]
	i = c.enterNested(i)
	for more := true; more; {
		end, hash := c.hashValue(i)
		if !c.spendSteps(1 + (end-i)/16) {
			return false
		}
		items = append(items, hashedItem{hash, len(items)})
		i, more = c.readSeparator(end, ']')
	}
	slices.SortFunc(items, func(a, b hashedItem) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.index, b.index))
	})
	for k := 1; k < len(items); k++ {
		if items[k-1].hash == items[k].hash && !c.addFault("must not have equal items (items %d and %d are)", items[k-1].index, items[k].index) {
			return false
		}
	}
	return true
}
