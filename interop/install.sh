#!/bin/sh
# Installs the npm peers that the tests of this module need, exactly as the package-lock.json of each folder pins them. With the
# word long it installs the large ones that only make long needs. npm ci cannot install those: it misses the packages for other
# platforms in the lock file that npm itself writes. Their package.json pins them, and they pin the binaries.
set -eu
cd "$(dirname "$0")"
if [ "${1-}" = long ]; then
	(cd hosts/large && npm install --ignore-scripts --no-package-lock --no-audit --no-fund)
	cd refused/large
	npm install --ignore-scripts --no-package-lock --no-audit --no-fund
	node node_modules/@anthropic-ai/claude-code/install.cjs
	cd node_modules/opencode-ai
	exec node postinstall.mjs
fi
for folder in node oidc refused/few hosts/few; do
	(cd "$folder" && npm ci --ignore-scripts --no-audit --no-fund)
done
