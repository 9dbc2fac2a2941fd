package uritemplate

// operator is the character after the opening brace; 0 for none.
type operator byte

// operatorRule is a row of RFC 6570's table of operators (appendix A).
type operatorRule struct {
	first     string // before the first defined variable
	separator byte   // before each further one
	named     bool   // whether values follow their variable's name
	ifEmpty   string // follows the name of an empty value
	reserved  bool   // whether reserved characters stay as they are
}

var operatorRules = map[operator]operatorRule{
	0:   {separator: ','},
	'+': {separator: ',', reserved: true},
	'#': {first: "#", separator: ',', reserved: true},
	'.': {first: ".", separator: '.'},
	'/': {first: "/", separator: '/'},
	';': {first: ";", separator: ';', named: true},
	'?': {first: "?", separator: '&', named: true, ifEmpty: "="},
	'&': {first: "&", separator: '&', named: true, ifEmpty: "="},
}
