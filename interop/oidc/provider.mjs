// An authorization server made with oidc-provider, for the test of logins. Every user is alice and agrees at once. Options are
// a JSON object in the first argument: nonce requires DPoP nonces; documents are client ID metadata documents by their URL. It
// prints its issuer when it is ready, and ends when its standard input does.
import { createServer } from 'node:http';
import { Provider } from 'oidc-provider';

const { nonce = false, documents = {} } = JSON.parse(process.argv[2]);

const server = createServer();
server.listen(0, '127.0.0.1', () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, configuration());
  const answer = provider.callback();
  server.on('request', (req, res) => {
    const path = req.url.split('?')[0];
    if (!path.startsWith('/interaction/')) return answer(req, res);
    const done = path.endsWith('/login') ? { login: { accountId: 'alice' } } : { login: { accountId: 'alice' }, consent: {} };
    return provider.interactionFinished(req, res, done).catch((err) => res.writeHead(500).end(String(err)));
  });
  console.log(issuer);
});
process.stdin.resume().on('end', () => process.exit(0));

function configuration() {
  return {
    clients: [
      {
        client_id: 'robot', client_secret: 'odd:/+ secret%', grant_types: ['client_credentials'], redirect_uris: [], response_types: [],
      },
    ],
    scopes: ['openid', 'offline_access', 'notes'],
    pkce: { required: () => true },
    findAccount: (ctx, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
    interactions: { url: (ctx, interaction) => `/interaction/${interaction.uid}` },
    issueRefreshToken: async () => true,
    rotateRefreshToken: true,
    loadExistingGrant: grantEverything,
    fetch: (url, options) => (documents[url] ? Response.json(documents[url]) : fetch(url, options)),
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      clientCredentials: { enabled: true },
      deviceFlow: { enabled: true },
      clientIdMetadataDocument: { enabled: true, ack: 'draft-02' },
      dPoP: { enabled: true, nonceSecret: nonce ? Buffer.alloc(32, 1) : undefined, requireNonce: () => nonce },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (ctx, resource) => ({ scope: 'notes', audience: resource, accessTokenFormat: 'jwt', accessTokenTTL: 600 }),
      },
    },
  };
}

async function grantEverything(ctx) {
  const { client, session, params, provider } = ctx.oidc;
  const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
  grant.addOIDCScope('openid offline_access notes');
  for (const resource of [params.resource ?? []].flat()) grant.addResourceScope(resource, 'notes');
  await grant.save();
  return grant;
}
