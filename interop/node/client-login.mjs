// A client on a TypeScript SDK that logs in at the authorization server of an MCP server, and calls tools:
//
//   node client-login.mjs v1|v2 URL TOOL...
//
// It prints the text of each result. It plays the user: it requests the authorization URL and takes the code from the redirect.

const [version, url, ...tools] = process.argv.slice(2);

async function load() {
    if (version === 'v2') {
        const { Client, StreamableHTTPClientTransport, UnauthorizedError } = await import('@modelcontextprotocol/client');
        return { Client, StreamableHTTPClientTransport, UnauthorizedError };
    }
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
    const { UnauthorizedError } = await import('@modelcontextprotocol/sdk/client/auth.js');
    return { Client, StreamableHTTPClientTransport, UnauthorizedError };
}

const { Client, StreamableHTTPClientTransport, UnauthorizedError } = await load();

/** Keeps everything in memory. */
class Provider {
    redirectUrl = 'http://127.0.0.1:1/callback';

    clientMetadata = {
        client_name: 'interop', redirect_uris: [this.redirectUrl], grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'], token_endpoint_auth_method: 'none'
    };

    clientInformation() { return this.client; }

    saveClientInformation(client) { this.client = client; }

    tokens() { return this.saved; }

    /** Without the refresh token: with one, v1 answers a challenge for more scopes by a refresh, which cannot add any. */
    saveTokens({ refresh_token: _, ...tokens }) { this.saved = tokens; }

    codeVerifier() { return this.verifier; }

    saveCodeVerifier(verifier) { this.verifier = verifier; }

    async redirectToAuthorization(authorizationUrl) {
        const response = await fetch(authorizationUrl, { redirect: 'manual' });
        const location = response.headers.get('location');
        if (!location) throw new Error(`the authorization server answers ${response.status}: ${await response.text()}`);
        this.redirected = new URL(location).searchParams;
    }
}

const provider = new Provider();

/** Calls use with a connected client, after a login if the server asks for one. */
async function withClient(use) {
    for (let attempt = 0; attempt < 3; attempt++) {
        const client = new Client({ name: 'interop', version: '1' });
        const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
        try {
            await client.connect(transport);
            return await use(client);
        } catch (error) {
            if (!(error instanceof UnauthorizedError)) throw error;
            const { redirected } = provider;
            await transport.finishAuth(version === 'v2' ? redirected : redirected.get('code'));
        } finally {
            await client.close();
        }
    }
    throw new Error('three logins were not enough');
}

for (const name of tools) {
    const result = await withClient(client => client.callTool({ name, arguments: {} }));
    console.log(result.content[0].text);
}
