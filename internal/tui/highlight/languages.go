package highlight

import "strings"

// syntax is how a language writes comments, texts and words.
type syntax struct {
	brackets   []bracket // of two that begin alike, the longer one comes first
	words      map[string]Kind
	wordMarks  string // ASCII characters that words have besides letters, digits and _
	keyMark    string // follows a key, such as : in JSON
	isCaseless bool   // words holds lower case
	isMarkup   bool   // tags and text between them
	isDiff     bool   // each line has one kind
}

// bracket is a form of comments or texts.
type bracket struct {
	open, close string // an empty close means the end of the line
	kind        Kind
	isLong      bool // it continues on the next line
	isRaw       bool // a backslash is nothing special
	afterSpace  bool // it begins a line or follows a space
}

// The forms of comments and texts that several languages have.
var (
	slashes      = bracket{open: "//", kind: Comment}
	block        = bracket{open: "/*", close: "*/", kind: Comment, isLong: true}
	hash         = bracket{open: "#", kind: Comment}
	spacedHash   = bracket{open: "#", kind: Comment, afterSpace: true}
	dashes       = bracket{open: "--", kind: Comment}
	semicolon    = bracket{open: ";", kind: Comment}
	double       = bracket{open: `"`, close: `"`, kind: Text}
	single       = bracket{open: "'", close: "'", kind: Text}
	backtick     = bracket{open: "`", close: "`", kind: Text, isLong: true}
	rawTick      = bracket{open: "`", close: "`", kind: Text, isLong: true, isRaw: true}
	rawSingle    = bracket{open: "'", close: "'", kind: Text, isRaw: true}
	longDouble   = bracket{open: `"`, close: `"`, kind: Text, isLong: true}
	longSingle   = bracket{open: "'", close: "'", kind: Text, isLong: true, isRaw: true}
	tripleDouble = bracket{open: `"""`, close: `"""`, kind: Text, isLong: true}
	tripleSingle = bracket{open: "'''", close: "'''", kind: Text, isLong: true}
	markup       = bracket{open: "<!--", close: "-->", kind: Comment, isLong: true}
)

// words returns the kinds of keywords and constants, which are lists of words.
func words(keywords, constants string) map[string]Kind {
	kinds := map[string]Kind{}
	for word := range strings.FieldsSeq(keywords) {
		kinds[word] = Keyword
	}
	for word := range strings.FieldsSeq(constants) {
		kinds[word] = Number
	}
	return kinds
}

func brackets(all ...bracket) []bracket { return all }

// languages holds the syntaxes by the names of their languages.
var languages = nameSyntaxes(map[string]*syntax{
	"go golang": {
		brackets: brackets(slashes, block, double, single, rawTick),
		words: words("break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
			"true false nil iota"),
	},
	"rust rs": {
		brackets: brackets(slashes, block, longDouble),
		words: words("as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return static struct super trait type unsafe use where while",
			"true false None Some Ok Err self Self"),
	},
	"c h cpp c++ cc hpp cxx objc": {
		brackets: brackets(slashes, block, double, single),
		words: words("alignas alignof auto bool break case catch char class concept const constexpr continue default delete do double else enum explicit export extern float for friend goto if inline int long namespace new operator override private protected public register return short signed sizeof static struct switch template throw try typedef typename union unsigned using virtual void volatile while #include #define #if #ifdef #ifndef #else #endif #pragma",
			"true false nullptr NULL this"),
		wordMarks: "#",
	},
	"java kotlin kt kts scala groovy": {
		brackets: brackets(slashes, block, tripleDouble, double, single),
		words: words("abstract as break case catch class companion const continue data def default do else enum extends final finally for fun given if implements import in inner instanceof interface internal is lateinit match native new object open operator override package private protected public record return sealed static super suspend switch synchronized throw throws trait transient try typealias val var void volatile when while with yield boolean byte char double float int long short",
			"true false null this"),
	},
	"csharp cs c#": {
		brackets: brackets(slashes, block, tripleDouble, double, single),
		words: words("abstract as async await base bool break byte case catch char class const continue decimal default delegate do double else enum event explicit extern finally fixed float for foreach get goto if implicit in init int interface internal is lock long nameof namespace new object operator out override params private protected public readonly record ref required return sbyte sealed set short sizeof static string struct switch throw try typeof uint ulong unchecked unsafe ushort using var virtual void volatile when where while yield",
			"true false null this"),
	},
	"swift dart": {
		brackets: brackets(slashes, block, tripleDouble, double, single),
		words: words("abstract actor as associatedtype async await break case catch class const continue default defer deinit do dynamic else enum extends extension factory fallthrough final for func get guard if implements import in init inout internal is late let mixin mutating open operator override private protocol public repeat required rethrows return sealed set some static struct subscript super switch throw throws try typealias typedef var void weak where while with yield",
			"true false nil null self Self this"),
	},
	"javascript js jsx mjs cjs node": {
		brackets: brackets(slashes, block, double, single, backtick), wordMarks: "$",
		words: words("as async await break case catch class const continue debugger default delete do else export extends finally for from function get if import in instanceof let new of return set static super switch throw try typeof var void while with yield",
			"true false null undefined NaN Infinity this"),
	},
	"typescript ts tsx mts": {
		brackets: brackets(slashes, block, double, single, backtick), wordMarks: "$",
		words: words("abstract any as asserts async await boolean break case catch class const continue debugger declare default delete do else enum export extends finally for from function get if implements import in infer instanceof interface is keyof let namespace never new number object of override private protected public readonly return satisfies set static string super switch symbol throw try type typeof unknown var void while with yield",
			"true false null undefined NaN Infinity this"),
	},
	"php": {
		brackets: brackets(slashes, block, hash, longDouble, longSingle), wordMarks: "$", isCaseless: true,
		words: words("abstract and array as break callable case catch class clone const continue declare default do echo else elseif empty enum extends final finally fn for foreach function global goto if implements include include_once instanceof interface isset list match namespace new or print private protected public readonly require require_once return static switch throw trait try unset use var while yield",
			"true false null $this self parent"),
	},
	"python py python3 py3 pycon": {
		brackets: brackets(hash, tripleDouble, tripleSingle, double, single),
		words: words("and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
			"True False None self"),
	},
	"ruby rb": {
		brackets: brackets(hash, double, single), wordMarks: "?!",
		words: words("alias and begin break case class def defined? do else elsif end ensure for if in module next not or redo rescue retry return super then undef unless until when while yield require require_relative attr_reader attr_accessor",
			"true false nil self"),
	},
	"elixir ex exs": {
		brackets: brackets(hash, tripleDouble, double, single), wordMarks: "?!",
		words: words("after alias and case catch cond def defmacro defmodule defp defstruct do else end fn for if import in not or quote raise receive require rescue try unless unquote use when with",
			"true false nil"),
	},
	"bash sh shell zsh console shell-session": {
		brackets: brackets(spacedHash, longDouble, longSingle), wordMarks: "-$./",
		words: words("if then else elif fi for in do done while until case esac function select return break continue exit export local readonly declare unset set shift source alias eval exec trap cd echo printf read test sudo",
			"true false"),
	},
	"powershell ps1 pwsh": {
		brackets: brackets(bracket{open: "<#", close: "#>", kind: Comment, isLong: true}, spacedHash, bracket{open: `"`, close: `"`, kind: Text, isRaw: true}, rawSingle),
		words: words("begin break catch class continue data do dynamicparam else elseif end enum exit filter finally for foreach from function if in param process return switch throw trap try until using while",
			"$true $false $null $_"), wordMarks: "-$", isCaseless: true,
	},
	"batch bat cmd": {
		brackets: brackets(bracket{open: "::", kind: Comment}, bracket{open: "rem ", kind: Comment}, bracket{open: "REM ", kind: Comment}, bracket{open: `"`, close: `"`, kind: Text, isRaw: true}),
		words:    words("call cd cls copy del dir do echo else endlocal errorlevel exist exit for goto if in md mkdir move not pause rd ren rmdir set setlocal shift start type", "nul"), isCaseless: true,
	},
	"sql postgresql postgres psql mysql sqlite plpgsql": {
		brackets: brackets(dashes, block, longSingle, double), isCaseless: true,
		words: words("add all alter analyze and any as asc begin between bigint boolean by cascade case cast char check column commit conflict constraint create cross database date default delete desc distinct do drop else end except exists explain false foreign from full function grant group having if in index inner insert int integer intersect into is join json jsonb key left like limit not nothing null numeric offset on or order outer over partition primary references replace returning returns right rollback row select set table text then timestamp to transaction trigger true union unique update using values varchar view when where window with",
			"null true false"),
	},
	"json jsonc json5 jsonl ndjson": {
		brackets: brackets(slashes, block, double, single), keyMark: ":",
		words: words("", "true false null"),
	},
	"yaml yml": {
		brackets: brackets(spacedHash, double, rawSingle), wordMarks: "-./", keyMark: ": ",
		words: words("", "true false null yes no on off ~"),
	},
	"toml ini conf cfg properties env dotenv editorconfig": {
		brackets: brackets(spacedHash, semicolon, tripleDouble, tripleSingle, double, rawSingle), wordMarks: "-.", keyMark: "=",
		words: words("", "true false yes no on off"),
	},
	"hcl terraform tf nix": {
		brackets: brackets(hash, slashes, block, double), wordMarks: "-", keyMark: "=",
		words: words("assert data else for if in import inherit let locals module output provider rec resource terraform then variable with", "true false null"),
	},
	"html xml svg xhtml vue svelte rss": {
		brackets: brackets(markup, longDouble, longSingle), wordMarks: "-:.@#", keyMark: "=", isMarkup: true,
	},
	"css scss less sass": {
		brackets: brackets(block, slashes, double, single), wordMarks: "-@#", keyMark: ":",
		words: words("@media @import @keyframes @font-face @supports @use @include @mixin @layer @container", "inherit initial none auto unset"),
	},
	"lua": {
		brackets: brackets(bracket{open: "--[[", close: "]]", kind: Comment, isLong: true}, dashes, double, single),
		words:    words("and break do else elseif end for function goto if in local not or repeat return then until while", "true false nil self"),
	},
	"dockerfile docker containerfile": {
		brackets: brackets(spacedHash, double, rawSingle), wordMarks: "-$./",
		words: words("FROM AS RUN CMD LABEL EXPOSE ENV ADD COPY ENTRYPOINT VOLUME USER WORKDIR ARG ONBUILD STOPSIGNAL HEALTHCHECK SHELL", ""),
	},
	"makefile make mk": {
		brackets: brackets(spacedHash, double, rawSingle), wordMarks: "-$./", keyMark: ":",
		words: words("define else endef endif export ifdef ifeq ifndef ifneq include override unexport", ""),
	},
	"protobuf proto graphql gql thrift": {
		brackets: brackets(slashes, block, hash, tripleDouble, double, single), wordMarks: "@$",
		words: words("bool bytes double enum extend extends float fragment implements import input int32 int64 interface map message mutation on oneof option optional package query repeated required returns rpc scalar schema service stream string struct subscription syntax type uint32 uint64 union",
			"true false null"),
	},
	"zig": {
		brackets: brackets(slashes, double, single), wordMarks: "@",
		words: words("align and anytype asm break catch comptime const continue defer else enum errdefer error export extern fn for if inline noalias or orelse packed pub resume return struct suspend switch test threadlocal try union unreachable usingnamespace var volatile while",
			"true false null undefined"),
	},
	"haskell hs elm": {
		brackets: brackets(bracket{open: "{-", close: "-}", kind: Comment, isLong: true}, dashes, double), wordMarks: "'",
		words: words("case class data default deriving do else forall foreign if import in infix infixl infixr instance let module newtype of qualified then type where", "True False Nothing Just"),
	},
	"r julia jl": {
		brackets: brackets(hash, tripleDouble, double, single), wordMarks: ".",
		words: words("abstract baremodule begin break catch const continue do else elseif end export finally for function global if import in let local macro module mutable next quote repeat return struct try using while",
			"TRUE FALSE NULL NA NaN Inf true false nothing missing"),
	},
	"perl pl": {
		brackets: brackets(spacedHash, longDouble, longSingle), wordMarks: "$@%",
		words: words("and die do else elsif eval for foreach if last local my next no not or our package print redo require return sub unless until use while", "undef"),
	},
	"diff patch udiff": {isDiff: true},
})

// nameSyntaxes returns the syntaxes by single names. The keys of named are lists of names.
func nameSyntaxes(named map[string]*syntax) map[string]*syntax {
	all := map[string]*syntax{}
	for names, s := range named {
		for name := range strings.FieldsSeq(names) {
			all[name] = s
		}
	}
	return all
}
