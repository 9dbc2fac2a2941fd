// Package options merges the option structs of one call.
//
// Functions that are called often, and mostly without options, take them as their last, variadic
// parameter:
//
//	func Call[Out any](ctx context.Context, c *Client, tool string, in any, opts ...CallOptions) (Out, error)
//
// A caller may pass a default and a deviation from it. See docs/decisions/0012-options.md.
package options

import "reflect"

// Merge returns the fields of all structs in opts. If several set a field, the last one wins. A
// field that holds its zero value counts as unset, so a later struct cannot reset a field. T must
// be a struct type of exported fields; a field that is a struct itself is merged in the same way.
func Merge[T any](opts []T) T {
	switch len(opts) {
	case 0:
		var zero T
		return zero
	case 1:
		return opts[0] // the usual case takes neither reflection nor memory
	}
	return mergeAll(opts)
}

func mergeAll[T any](opts []T) T {
	var merged T
	for _, o := range opts {
		mergeStruct(reflect.ValueOf(&merged).Elem(), reflect.ValueOf(o))
	}
	return merged
}

func mergeStruct(into, from reflect.Value) {
	for i := range from.NumField() {
		switch field := from.Field(i); {
		case field.IsZero():
		case field.Kind() == reflect.Struct:
			mergeStruct(into.Field(i), field)
		default:
			into.Field(i).Set(field)
		}
	}
}
