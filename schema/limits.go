package schema

import (
	"errors"
	"fmt"
)

// Limits of a schema and of one validation.
const (
	// maxSchemaBytes bounds the text of one schema.
	maxSchemaBytes = 1 << 20
	// maxSubschemas bounds the subschemas of one schema.
	maxSubschemas = 8192
	// maxDepth bounds the nesting of arrays and objects, in values and in schemas.
	maxDepth = 128
	// maxSteps bounds the work of one validation, beside 4 steps for each byte of the value. That
	// is about a tenth of a second.
	maxSteps = 1 << 18
	// maxIssues bounds the issues in one [ValidationError].
	maxIssues = 10
)

// maxChain bounds how many subschemas can apply to one value through each
// other ($ref, allOf and the like), which bounds the stack of a validation.
const maxChain = 128

// maxExponent bounds the exponent of numbers given to math/big, which would
// otherwise write out 1e999999999 digit by digit.
const maxExponent = 1000

var (
	// ErrUnsupported is wrapped by the errors of [Compile] for schemas that may be valid but that
	// this package does not check: another dialect, a $ref that leaves the document or refers to
	// itself, a pattern that Go's regexp cannot run, a schema beyond the bounds.
	ErrUnsupported = errors.New("unsupported schema")
	// ErrOutside is wrapped by the errors of [Compile] for a $ref that leaves the document. It
	// wraps ErrUnsupported.
	ErrOutside = fmt.Errorf("%w", ErrUnsupported)
	// ErrDialect is wrapped by the errors of [Compile] for a $schema that names an unknown dialect.
	// It wraps ErrUnsupported.
	ErrDialect = fmt.Errorf("%w", ErrUnsupported)
	// ErrTooComplex is wrapped by the error of [Schema.Validate] when checking
	// the value would cost more than the bound in the package comment.
	ErrTooComplex = errors.New("validation exceeds its work bound")
)
