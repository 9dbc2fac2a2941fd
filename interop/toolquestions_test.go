package interop

import "strings"

// toolQuestion is a query of a model to the tool search, with the tools that are right answers, as
// server.tool. Several tools are right only if they do the same.
type toolQuestion struct {
	ask   string
	right []string
}

// The questions were written before the ranking was tuned.
var toolQuestions = questions(`
open a bug ticket on GitHub | github.create_issue
find open source projects on GitHub about image compression | github.search_repositories
which files does this GitHub pull request touch | github.get_pull_request_files
who wrote this line of code in gitlab | gitlab.get_file_blame
re-run the CI pipeline that failed | gitlab.retry_pipeline
see the log that a CI job printed | gitlab.get_pipeline_job_output
send a message to the team's Slack channel | slack.slack_post_message
read what was said recently in #general on Slack | slack.slack_get_channel_history
make a new Notion page | notion.API-post-page
remove a block from a Notion page | notion.API-delete-a-block
rename a file on disk | filesystem.move_file
when was this local file last modified and how big is it | filesystem.get_file_info
make a folder | filesystem.create_directory
remember a new fact about a person we already know | memory.add_observations
think through a hard problem step by step | thinking.sequentialthinking
add two numbers | everything.get-sum
compress a file | everything.gzip-file-as-resource
capture an image of the current web page | playwright.browser_take_screenshot chrome.take_screenshot
choose an entry of a dropdown on the page | playwright.browser_select_option chrome.fill
switch the page to dark mode | playwright.browser_emulate_media chrome.emulate
scroll down | playwright.browser_mouse_wheel
how fast does the page load, Core Web Vitals | chrome.performance_start_trace
why is an object not garbage collected, what keeps it alive | chrome.get_heapsnapshot_retainers chrome.get_heapsnapshot_retaining_paths
check accessibility and SEO of a website | chrome.lighthouse_audit
find contacts in the CRM whose email ends with a domain | hubspot.hubspot-search-objects
log a note or a task on a HubSpot contact | hubspot.hubspot-create-engagement
what custom fields does a HubSpot deal have | hubspot.hubspot-list-properties
run a query against the Postgres database | supabase.execute_sql
how much will a new Supabase project cost | supabase.get_cost
publish a serverless function | supabase.deploy_edge_function
spin up a fake API server that returns canned answers | postman.createMock
run all requests of a Postman collection and see the test results | postman.runCollection
make an OpenAPI definition from a collection | postman.generateSpecFromCollection
who are the members of my Postman team | postman.getTeamUsers
add an unpacked extension to Chrome | chrome.install_extension
`)

// heldOut was first asked when the ranking answered all of toolQuestions. It answered 10 of these
// 15 then, and was improved where the improvement helps any tool.
var heldOut = questions(`
leave a reply on an existing GitHub ticket | github.add_issue_comment
did the CI checks of my GitHub PR pass | github.get_pull_request_status
check my .gitlab-ci.yml for syntax errors | gitlab.validate_project_ci_lint gitlab.validate_ci_lint
add a secret variable for all projects of a GitLab group | gitlab.create_group_variable
answer in a Slack thread | slack.slack_reply_to_thread
list everybody in the Notion workspace | notion.API-get-users
replace a few lines in a text file | filesystem.edit_file
load several files at once | filesystem.read_multiple_files
forget a link between two entities | memory.delete_relations
which HTTP calls did the page make | playwright.browser_network_requests chrome.list_network_requests
make the page behave as if on a slow 3G connection | chrome.emulate
link a contact to a company in HubSpot | hubspot.hubspot-batch-create-associations
are there security problems in my Supabase database | supabase.get_advisors
take a paused Supabase project back into service | supabase.restore_project
schedule a recurring check of an API | postman.createMonitor
`)

// unseen was written after that. The ranking has not been tuned for these questions, so they
// measure its quality. At least atLeastUnseen of them must be answered.
var unseen = questions(`
put a thumbs-up on a Slack post | slack.slack_add_reaction
sign off on a merge request in GitLab | gitlab.approve_merge_request
get rid of an old branch on GitLab | gitlab.delete_branch
copy somebody's GitHub repo into my account | github.fork_repository
export the page as PDF | playwright.browser_pdf_save
type into several input boxes at once | playwright.browser_fill_form chrome.fill_form
see errors logged in the browser console | playwright.browser_console_messages chrome.list_console_messages
show a folder's structure recursively | filesystem.directory_tree
what is in the knowledge graph | memory.read_graph
add a paragraph to the end of a Notion page | notion.API-patch-block-children notion.API-update-page-markdown
change the stage of several HubSpot deals | hubspot.hubspot-batch-update-objects
list the columns and tables of the database | supabase.list_tables
turn off a Supabase project for now | supabase.pause_project
share API docs publicly | postman.publishDocumentation
find leaked credentials in Postman | postman.detectedSecretsQueries postman.getDetectedSecretsLocations
look up the profile of a Slack colleague | slack.slack_get_user_profile
environment variables of the server process | everything.get-env
close the browser popup that asks to confirm | playwright.browser_handle_dialog chrome.handle_dialog
find memory leaks by comparing two snapshots | chrome.compare_heapsnapshots
plan a CI pipeline to run every night | gitlab.create_pipeline_schedule
`)

const atLeastUnseen = 17

func questions(table string) (all []toolQuestion) {
	for line := range strings.Lines(strings.TrimSpace(table)) {
		ask, right, _ := strings.Cut(strings.TrimSpace(line), " | ")
		all = append(all, toolQuestion{ask, strings.Fields(right)})
	}
	return all
}
