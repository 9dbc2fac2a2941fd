package search

import (
	"strings"
	"sync"
)

// Synonyms among tools. Each line is a class of words; a hyphen joins the words of a phrase.
// Classes are not transitive: a word in two classes does not join them. A class must hold for tools
// in general; synonyms of a single tool belong in its description.
const (
	// closeClasses are words that mean the same.
	closeClasses = `
create add new make insert generate spin-up set-up
write author
remember memory memorize recall
delete remove erase destroy drop purge forget get-rid
multiple several many batch bulk
get fetch retrieve read show view display see load
list enumerate show get browse
find search query lookup look-up locate discover
update edit modify change patch alter replace
send post write submit
run execute start launch trigger invoke perform play
stop end cancel abort terminate halt kill
close quit exit
move rename relocate transfer
copy duplicate clone fork replicate
upload attach import
download export
approve accept
reject deny decline refuse dismiss
restore undo revert recover rollback roll-back resume unpause
retry rerun re-run restart redo run-again repeat
validate check verify lint
deploy publish release ship
compare diff difference
link associate connect relate join
compress gzip zip
summarize summary overview
open navigate visit go
enable activate
disable deactivate
schedule cron recurring periodic
subscribe watch follow
reply answer respond response
repository repo
pull-request pr
merge-request mr
pull-request merge-request
issue ticket bug
message chat dm
file document
folder directory dir
comment note remark
user member person account
picture image photo
page website webpage site
database db sql postgres
token key credential secret
setting config configure option preference
field property column attribute
link association relation relationship connection edge
environment env
ci cicd pipeline build
function lambda
email mail
cost price pricing bill
label tag
reaction emoji
mock fake stub
spec specification openapi swagger
security vulnerability
organization org company
wiki docs documentation
log output trace
console terminal shell
screenshot capture snapshot
authenticate auth authorize login log-in sign-in
whoami current-user
size dimension
history recent
javascript js script
kubernetes k8s
`
	// looseClasses are words that mean the same in some uses.
	looseClasses = `
create open register start
add attach append insert put
delete clear close
get list describe inspect
change set rename
change diff
publish send upload
save store write export remember
list find
think reason reflect
repository project codebase
pr mr merge-request
mr pull-request
issue task item story incident problem error
message comment thread
discussion thread conversation
text content
ci job check test workflow action
database table schema
page tab window screen
picture screenshot
function serverless code
definition schema type
entity node object record item
person contact customer
reaction like
network http request
request call invoke
network connection internet
server api service
team group organization
monitor check watch
time date
tree structure hierarchy
performance speed fast slow latency
`
	closeWeight = 0.8
	looseWeight = 0.45
)

// synonym is another way to say something: one or more stems.
type synonym struct {
	stems  []string
	weight float64
}

// synonyms maps stems to their synonyms. The stems of a phrase are joined by spaces.
var synonyms = sync.OnceValue(func() map[string][]synonym {
	all := map[string][]synonym{}
	addClasses(all, closeClasses, closeWeight)
	addClasses(all, looseClasses, looseWeight)
	return all
})

func addClasses(all map[string][]synonym, classes string, weight float64) {
	for class := range strings.Lines(classes) {
		var members [][]string
		for _, m := range strings.Fields(class) {
			members = append(members, stemAll(strings.Split(m, "-")))
		}
		for i, from := range members {
			key := strings.Join(from, " ")
			for j, to := range members {
				if i != j {
					all[key] = append(all[key], synonym{to, weight})
				}
			}
		}
	}
}

// stemAll returns the stems of words.
func stemAll(words []string) []string {
	all := make([]string, len(words))
	for i, w := range words {
		all[i] = stem(w)
	}
	return all
}
