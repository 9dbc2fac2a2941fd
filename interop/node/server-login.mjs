// A server on a TypeScript SDK that accepts the access tokens of an authorization server, with the SDK's own check of tokens:
//
//   PORT=PORT node server-login.mjs v1|v2 ISSUER
//
// Both tools name the user. The tool read needs the scope notes:read, the tool write notes:write too. Tokens are looked up at
// the authorization server, with the client rs.

import { createServer } from 'node:http';

const [version, issuer] = process.argv.slice(2);
const port = Number(process.env.PORT);
const url = new URL(`http://127.0.0.1:${port}/mcp`);
const text = s => ({ content: [{ type: 'text', text: s }] });

const metadata = await (await fetch(`${issuer}/.well-known/oauth-authorization-server`)).json();

/** Returns the scopes that the body of a request needs. */
const scopesOf = body => (body?.params?.name === 'write' ? ['notes:read', 'notes:write'] : ['notes:read']);

/** Looks a token up (RFC 7662). invalid makes the error of a token that is not valid. */
async function verify(token, invalid) {
    const answer = await fetch(metadata.introspection_endpoint, {
        method: 'POST', headers: { Authorization: `Basic ${btoa('rs:secret')}` }, body: new URLSearchParams({ token })
    });
    const found = await answer.json();
    if (!found.active) throw invalid('unknown or expired');
    const [resource] = [found.aud].flat();
    return {
        token, clientId: found.client_id, scopes: found.scope.split(' '), expiresAt: found.exp, resource: new URL(resource),
        extra: { subject: found.sub }
    };
}

async function serveV1() {
    const { default: express } = await import('express');
    const { McpServer } = await import('@modelcontextprotocol/sdk/server/mcp.js');
    const { StreamableHTTPServerTransport } = await import('@modelcontextprotocol/sdk/server/streamableHttp.js');
    const { getOAuthProtectedResourceMetadataUrl, mcpAuthMetadataRouter } = await import('@modelcontextprotocol/sdk/server/auth/router.js');
    const { requireBearerAuth } = await import('@modelcontextprotocol/sdk/server/auth/middleware/bearerAuth.js');
    const { InvalidTokenError } = await import('@modelcontextprotocol/sdk/server/auth/errors.js');
    const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(url);
    const verifier = { verifyAccessToken: token => verify(token, message => new InvalidTokenError(message)) };
    const app = express();
    app.use(mcpAuthMetadataRouter({ oauthMetadata: metadata, resourceServerUrl: url, scopesSupported: ['notes:read', 'notes:write'] }));
    app.use(express.json());
    app.use('/mcp', (req, res, next) => requireBearerAuth({
        verifier, requiredScopes: scopesOf(req.body), resourceMetadataUrl, expectedResource: url
    })(req, res, next));
    app.post('/mcp', async (req, res) => {
        const server = new McpServer({ name: 'notes', version: '1' });
        for (const name of ['read', 'write']) server.tool(name, ({ authInfo }) => text(authInfo.extra.subject));
        const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: undefined });
        res.on('close', () => server.close());
        await server.connect(transport);
        await transport.handleRequest(req, res, req.body);
    });
    app.all('/mcp', (req, res) => res.status(405).end());
    app.listen(port, '127.0.0.1');
}

async function serveV2() {
    const {
        createMcpHandler, getOAuthProtectedResourceMetadataUrl, McpServer, OAuthError, OAuthErrorCode, oauthMetadataResponse, requireBearerAuth
    } = await import('@modelcontextprotocol/server');
    const { toNodeHandler } = await import('@modelcontextprotocol/node');
    const resourceMetadataUrl = getOAuthProtectedResourceMetadataUrl(url);
    const verifier = { verifyAccessToken: token => verify(token, message => new OAuthError(OAuthErrorCode.InvalidToken, message)) };
    const handler = createMcpHandler(() => {
        const server = new McpServer({ name: 'notes', version: '1' }, { capabilities: { tools: {} } });
        for (const name of ['read', 'write']) server.registerTool(name, {}, context => text(context.http.authInfo.extra.subject));
        return server;
    });
    const answer = toNodeHandler({
        async fetch(request) {
            const document = oauthMetadataResponse(request, { oauthMetadata: metadata, resourceServerUrl: url });
            if (document) return document;
            const body = request.method === 'POST' ? await request.clone().json() : undefined;
            const gate = requireBearerAuth({ verifier, requiredScopes: scopesOf(body), resourceMetadataUrl, expectedResource: url });
            const authInfo = await gate(request);
            return authInfo instanceof Response ? authInfo : handler.fetch(request, { authInfo });
        }
    });
    createServer((request, response) => answer(request, response)).listen(port, '127.0.0.1');
}

await (version === 'v2' ? serveV2 : serveV1)();
