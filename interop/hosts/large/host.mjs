// Mastra and mcp-use as clients of dowel up.

import { useHost } from '../use.mjs';

await useHost({
    async mastra(target, tool, message) {
        const server = target.url === undefined
            ? { command: target.command, args: target.args, env: target.env }
            : { url: new URL(target.url), requestInit: { headers: target.headers } };
        const { MCPClient } = await import('@mastra/mcp');
        const client = new MCPClient({ servers: { dowel: server } });
        const tools = (await client.listToolsets()).dowel;
        return {
            names: Object.keys(tools),
            call: () => tools[tool].execute({ message }),
            close: () => client.disconnect(),
        };
    },
    async 'mcp-use'(target, tool, message) {
        const server = target.url === undefined
            ? { command: target.command, args: target.args, env: target.env }
            : { url: target.url, headers: target.headers };
        const { MCPClient } = await import('mcp-use');
        const client = MCPClient.fromDict({ mcpServers: { dowel: server } });
        const session = await client.createSession('dowel');
        const tools = await session.listTools();
        return {
            names: tools.map(each => each.name),
            call: () => session.callTool(tool, { message }),
            close: () => client.closeAllSessions(),
        };
    },
});
