package data

import (
	"context"
	"errors"
	"math/big"
	"strconv"

	"github.com/dowel-mcp/dowel/mcp"
	"github.com/dowel-mcp/dowel/server"
)

type numbersIn struct {
	Numbers []float64 `json:"numbers" doc:"The numbers" minItems:"1" maxItems:"10000"`
}

type pairIn struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}

// Number is the result of the arithmetic tools.
type Number struct {
	Result float64 `json:"result"`
}

// addArithmetic adds tools that calculate with decimal fractions, so that 0.1 + 0.2 is 0.3.
func addArithmetic(s *server.Server) {
	overNumbers := func(name, description string, fn func(all []*big.Rat) *big.Rat) {
		server.Tool(s, name, description, func(_ context.Context, in numbersIn) (Number, error) {
			var all []*big.Rat
			for _, f := range in.Numbers {
				all = append(all, decimal(f))
			}
			return roundNumber(fn(all))
		}, server.ToolOptions{Annotations: mcp.ReadOnly})
	}
	overPair := func(name, description string, fn func(a, b *big.Rat) (*big.Rat, error)) {
		server.Tool(s, name, description, func(_ context.Context, in pairIn) (Number, error) {
			result, err := fn(decimal(in.A), decimal(in.B))
			if err != nil {
				return Number{}, err
			}
			return roundNumber(result)
		}, server.ToolOptions{Annotations: mcp.ReadOnly})
	}
	overNumbers("sum", "Adds numbers.", addNumbers)
	overNumbers("mean", "Returns the arithmetic mean of numbers.", func(all []*big.Rat) *big.Rat {
		return new(big.Rat).Quo(addNumbers(all), new(big.Rat).SetInt64(int64(len(all))))
	})
	overPair("subtract", "Subtracts b from a.", func(a, b *big.Rat) (*big.Rat, error) { return a.Sub(a, b), nil })
	overPair("multiply", "Multiplies a by b.", func(a, b *big.Rat) (*big.Rat, error) { return a.Mul(a, b), nil })
	overPair("divide", "Divides a by b.", func(a, b *big.Rat) (*big.Rat, error) {
		if b.Sign() == 0 {
			return nil, errors.New("b is zero: nothing can be divided by it")
		}
		return a.Quo(a, b), nil
	})
}

func addNumbers(all []*big.Rat) *big.Rat {
	sum := new(big.Rat)
	for _, n := range all {
		sum.Add(sum, n)
	}
	return sum
}

// decimal returns the shortest decimal fraction that rounds to f.
func decimal(f float64) *big.Rat {
	n, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'g', -1, 64))
	return n
}

func roundNumber(n *big.Rat) (Number, error) {
	f, _ := n.Float64()
	if v := numberValue(f); v.kind == kindMissing {
		return Number{}, errors.New("the result is too large for a number")
	}
	return Number{f}, nil
}
